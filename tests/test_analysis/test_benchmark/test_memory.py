"""Peak memory: of a tensor of known size, of a model in its own process, of one that fails."""

import subprocess

import pytest
import torch

from mmvit_ext.analysis.benchmark import Case, memory, peak
from mmvit_ext.analysis.benchmark.memory import memory_of

# more than malloc keeps for later use
SIZE = 128 * 2**20


def can_forget():
    return peak._forget_peak()


@pytest.mark.skipif(not can_forget(), reason='the system does not let the peak be reset')
def test_a_tensor_is_seen_though_it_is_gone():
    found = peak.peak_on_cpu(lambda: torch.ones(SIZE // 4).sum())
    # the system may take back idle pages of the process meanwhile
    assert 0.75 * SIZE < found.growth < 1.5 * SIZE
    assert found.peak > found.growth


@pytest.mark.skipif(not can_forget(), reason='the system does not let the peak be reset')
def test_an_earlier_peak_is_forgotten():
    torch.ones(SIZE // 4).sum()
    assert peak.peak_on_cpu(lambda: None).growth < SIZE // 4


def test_without_the_reset_the_whole_is_told(monkeypatch):
    monkeypatch.setattr(peak, '_forget_peak', lambda: False)
    found = peak.peak_on_cpu(lambda: torch.ones(SIZE // 4).sum())
    assert found.growth is None and found.peak > SIZE


@pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a GPU')
def test_a_tensor_is_seen_on_a_gpu():
    device = torch.device('cuda')
    kept = torch.ones(SIZE // 4, device=device)
    found = peak.peak_on_gpu(lambda: torch.ones(SIZE // 4, device=device).sum(), device)
    assert SIZE <= found.growth < 1.1 * SIZE
    assert found.peak >= found.growth + kept.nbytes


def test_model_in_a_process_of_its_own():
    case = Case((4, 3, 256, 256))
    found, reason = memory_of('reference:ShiftViT-nano', case, 'cpu', 1, False)
    assert reason is None
    # hidden map of the first stage's MLP, float32: 4 images, 96 channels, 64 x 64 cells
    hidden = 4 * 96 * 64 * 64 * 4
    outputs = hidden // 2 * (1 + 1 / 2 + 1 / 4 + 1 / 8)
    if found.growth is not None:
        # it needs the map and its activation at once, and by the end holds the outputs
        assert max(2 * hidden, outputs) <= found.growth < 6 * hidden
    assert found.peak > 2 * hidden


def test_model_that_cannot_run_tells_why():
    text = 'timm:vit_tiny_patch16_224:img_size=32,depth=1,dynamic_img_size=false'
    found, reason = memory_of(text, Case((1, 3, 64, 64)), 'cpu', 1, False)
    assert found is None and reason.startswith("AssertionError: Input height (64) doesn't match")


@pytest.mark.parametrize(
    ('code', 'error', 'reason'),
    [(-9, '', 'process ended by SIGKILL'), (1, 'Traceback\nImportError: no\n', 'ImportError: no')],
)
def test_process_that_ends_early_tells_why(monkeypatch, code, error, reason):
    ended = subprocess.CompletedProcess([], code, '', error)
    monkeypatch.setattr(memory.subprocess, 'run', lambda *_, **__: ended)
    assert memory_of('a:b', Case((1, 3, 8, 8)), 'cpu', 1, False) == (None, reason)
