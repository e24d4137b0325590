"""The robustness tool, in a process of its own."""

import pytest

DETECTOR = 'configs/demo/cascade-mask-rcnn_reswin-nano_digits.py'


@pytest.mark.tools
def test_detectors_are_refused_in_one_line(tool, tmp_path):
    (tmp_path / 'w.pth').touch()
    result = tool('analysis_tools/robustness.py', DETECTOR, tmp_path / 'w.pth', check=False)
    error = [line for line in result.stderr.splitlines() if line.startswith('error: ')]
    assert result.returncode == 2 and len(error) == 1 and "default_scope='mmdet'" in error[0]
