"""The benchmark tool, in a process of its own, on two small models."""

import json

import pytest

from mmvit_ext.analysis.benchmark import from_json

MODELS = ['reference:ShiftViT-nano', 'mmvit_ext:ShiftViT:arch=nano']


@pytest.mark.tools
def test_two_models(tool, tmp_path):
    args = ['--models', *MODELS, '--shapes', '1x3x64x64', '--rounds', 2, '--out', tmp_path]
    printed = tool('analysis_tools/benchmark.py', *args).stdout
    page = (tmp_path / 'benchmark.md').read_text(encoding='utf-8')
    assert page in printed and all(f'| `{model}` | 4 | 2.26 |' in page for model in MODELS)
    assert 'python tools/analysis_tools/benchmark.py --models reference:ShiftViT-nano' in page
    (run,) = from_json(json.loads((tmp_path / 'benchmark.json').read_text(encoding='utf-8')))
    ((result,),) = run.groups
    for row in result.rows:
        assert len(row.seconds) == 2 and row.reason is None and row.memory.peak > 0
    assert result.rows[0].multiply_adds == result.rows[1].multiply_adds
    assert (tmp_path / 'images' / 'benchmark-1-ratios.png').is_file()


@pytest.mark.tools
def test_unknown_model_is_told_in_one_line(tool, tmp_path):
    args = ['--models', 'mmvit_ext:ShiftVit', '--out', tmp_path]
    result = tool('analysis_tools/benchmark.py', *args, check=False)
    error = [line for line in result.stderr.splitlines() if line.startswith('error: ')]
    assert result.returncode == 2 and len(error) == 1 and 'did you mean ShiftViT' in error[0]
