"""A tool's config: what the command line changes, and what it refuses."""

import re

import pytest
import torch
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.optim import build_optim_wrapper

from mmvit_ext.engine.cli import train_parser
from mmvit_ext.engine.config import (
    apply_train_options,
    check_batch_norm,
    check_channels,
    read_config,
    run_config,
)
from mmvit_ext.errors import UsageError

SEGMENTATION = 'configs/demo/upernet_reswin-nano_digits.py'
DETECTION = 'configs/cascade_rcnn_reswin_t_coco.py'


@pytest.fixture
def data(tmp_path):
    """Empty folders where the segmentation config looks for its data."""
    for kind in ('images', 'annotations'):
        for split in ('training', 'validation'):
            (tmp_path / kind / split).mkdir(parents=True)
    return str(tmp_path)


def options(*args):
    return train_parser().parse_args(list(args))


def test_command_line_wins_over_the_config(data):
    args = options(
        SEGMENTATION, '--data-root', data, '--work-dir', 'w', '--seed', '7',
        '--cfg-options', 'train_dataloader.batch_size=2', 'model.backbone.alpha=0.9',
    )  # fmt: skip
    cfg = run_config(args, ('train_dataloader',))
    assert cfg.work_dir == 'w' and cfg.randomness.seed == 7
    assert cfg.train_dataloader.batch_size == 2 and cfg.model.backbone.alpha == 0.9


def test_work_dir_is_named_after_the_config(data):
    cfg = run_config(options(SEGMENTATION, '--data-root', data), ('train_dataloader',))
    assert cfg.work_dir == 'work_dirs/upernet_reswin-nano_digits'


def test_pretrained_weights_can_be_set_where_the_config_has_none(data):
    init = 'model.backbone.init_cfg'
    args = options(
        DETECTION, '--cfg-options', f'{init}.type=Pretrained', f'{init}.checkpoint=x.pth'
    )
    cfg = run_config(args, ())
    assert cfg.model.backbone.init_cfg == {'type': 'Pretrained', 'checkpoint': 'x.pth'}


def test_missing_config_and_scope(tmp_path):
    with pytest.raises(UsageError, match='config=none.py: no such file'):
        read_config('none.py')
    file = tmp_path / 'c.py'
    file.write_text("default_scope = 'mmocr'\n")
    with pytest.raises(UsageError, match="default_scope='mmocr'.*mmpretrain, mmdet, mmseg"):
        read_config(str(file))


def test_resume_takes_the_latest_or_a_given_checkpoint(tmp_path):
    cfg = Config({'work_dir': str(tmp_path)})
    apply_train_options(cfg, options('c', '--resume'))
    assert cfg.resume and cfg.load_from is None
    file = tmp_path / 'w.pth'
    file.touch()
    apply_train_options(cfg, options('c', '--resume', str(file)))
    assert cfg.load_from == str(file)
    with pytest.raises(UsageError, match='--resume=none.pth: no such file'):
        apply_train_options(cfg, options('c', '--resume', 'none.pth'))


@pytest.mark.skipif(torch.cuda.is_available(), reason='the message is for machines without a GPU')
def test_amp_without_gpu_is_refused():
    with pytest.raises(UsageError, match='--amp.*needs a GPU'):
        apply_train_options(Config.fromfile(DETECTION), options('c', '--amp'))


def test_amp_with_gpu_switches_the_optimizer_wrapper(monkeypatch):
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: True)
    cfg = Config.fromfile(DETECTION)
    apply_train_options(cfg, options('c', '--amp'))
    assert cfg.optim_wrapper.type == 'AmpOptimWrapper'
    assert cfg.optim_wrapper.loss_scale == 'dynamic'


def test_auto_scale_lr_needs_a_base_batch_size():
    cfg = Config.fromfile(DETECTION)
    apply_train_options(cfg, options('c', '--auto-scale-lr'))
    assert cfg.auto_scale_lr.enable
    with pytest.raises(UsageError, match='base_batch_size'):
        apply_train_options(Config({}), options('c', '--auto-scale-lr'))


def test_one_image_in_a_pooling_branch_is_refused_with_the_reason():
    cfg = Config.fromfile(SEGMENTATION)
    cfg.launcher = 'none'
    check_batch_norm(cfg)
    cfg.train_dataloader.batch_size = 1
    with pytest.raises(UsageError, match='batch_size=1.*SyncBN.*single image'):
        check_batch_norm(cfg)
    cfg.model.decode_head.norm_cfg = {'type': 'GN', 'num_groups': 32}
    check_batch_norm(cfg)


@pytest.mark.parametrize('config, part', [(DETECTION, 'neck'), (SEGMENTATION, 'decode_head')])
def test_channels_that_do_not_fit_are_told_with_both_lists(config, part):
    cfg = Config.fromfile(config)
    check_channels(cfg)
    cfg.model.backbone.update(embed_dims=24, num_heads=(3, 3, 3, 3))
    wanted = cfg.model[part].in_channels
    given = [24, 48, 96, 192]
    with pytest.raises(UsageError, match=re.escape(f'model.{part}.in_channels={wanted}')) as error:
        check_channels(cfg)
    assert str(given) in str(error.value)


@pytest.mark.parametrize('flag', ['--local-rank', '--local_rank'])
def test_both_spellings_of_the_rank(flag):
    assert options('c', f'{flag}=3').local_rank == 3


def test_help_is_free_of_what_mim_takes_as_a_sign():
    assert '--gpus' not in train_parser().format_help()


def test_amp_takes_fp16_without_a_value_and_nothing_unknown(capsys):
    assert options('c').amp is None
    assert options('c', '--amp').amp == 'fp16'
    assert options('c', '--amp', 'bf16').amp == 'bf16'
    with pytest.raises(SystemExit):
        options('c', '--amp', 'int8')
    assert "invalid choice: 'int8'" in capsys.readouterr().err


@pytest.fixture
def gpu(monkeypatch):
    """Pretends that there is a GPU; call it with its compute capability."""

    def pretend(major):
        monkeypatch.setattr(torch.cuda, 'is_available', lambda: True)
        monkeypatch.setattr(torch.cuda, 'get_device_capability', lambda: (major, 0))
        monkeypatch.setattr(torch.cuda, 'get_device_name', lambda: 'Some GPU')

    return pretend


@pytest.mark.parametrize(
    'kind, dtype, scale',
    [('fp16', 'float16', 'dynamic'), ('bf16', 'bfloat16', {'enabled': False})],
)
def test_amp_sets_precision_and_scaling_and_nothing_else(gpu, kind, dtype, scale):
    gpu(8)
    cfg = Config({'optim_wrapper': {'type': 'OptimWrapper', 'optimizer': {'type': 'SGD'}}})
    cfg.optim_wrapper.update(accumulative_counts=4, clip_grad={'max_norm': 5.0})
    before = cfg.optim_wrapper.to_dict()
    apply_train_options(cfg, options('c', '--amp', kind))
    changed = {'type': 'AmpOptimWrapper', 'dtype': dtype, 'loss_scale': scale}
    assert cfg.optim_wrapper.to_dict() == {**before, **changed}


def test_a_loss_scale_of_the_config_stays_with_fp16(gpu):
    gpu(7)
    cfg = Config({'optim_wrapper': {'type': 'OptimWrapper', 'loss_scale': 512.0}})
    apply_train_options(cfg, options('c', '--amp', 'fp16'))
    assert cfg.optim_wrapper.loss_scale == 512.0


def test_bf16_needs_a_gpu_that_computes_it(gpu):
    gpu(7)
    with pytest.raises(UsageError, match='--amp=bf16: Some GPU has no bfloat16.*--amp fp16'):
        apply_train_options(Config({'optim_wrapper': {}}), options('c', '--amp', 'bf16'))


def test_bf16_steps_without_scaling(gpu, monkeypatch):
    gpu(8)
    cfg = Config({'optim_wrapper': {'optimizer': {'type': 'SGD', 'lr': 0.5}}})
    cfg.optim_wrapper.clip_grad = {'max_norm': 1.0}
    apply_train_options(cfg, options('c', '--amp', 'bf16'))
    # mmengine asks once more; autocast then takes the device it found at import, the CPU or a GPU
    where = 'mmengine.optim.optimizer.amp_optimizer_wrapper.is_cuda_available'
    monkeypatch.setattr(where, lambda: True)
    device = get_device()
    model = torch.nn.Linear(4, 2, bias=False, device=device)
    start = model.weight.detach().clone()
    wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
    with wrapper.optim_context(model):
        out = model(torch.ones(3, 4, device=device))
    assert out.dtype == torch.bfloat16
    wrapper.update_params(out.float().sum())
    # the gradient is 3 in all 8 places, its norm 3 * sqrt(8); clipped to 1, each is 1 / sqrt(8)
    torch.testing.assert_close(start - model.weight.detach(), torch.full_like(start, 0.5 / 8**0.5))
