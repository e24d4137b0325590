"""Pictures of a run: which there are, and what they draw."""

import math

import cv2
import pytest

from mmvit_ext.analysis.benchmark import draw, picture_names, plots


def test_three_sizes_make_a_curve(run):
    (curve,) = plots.curves(run.groups[0])
    assert [result.case.shape[2] for result in curve] == [64, 128, 256]
    assert plots.singles(run.groups[0]) == run.groups[0][:2]


def test_two_sizes_do_not(run):
    group = run.groups[0][:4]
    assert plots.curves(group) == [] and plots.singles(group) == group


def test_pictures_are_drawn(run, tmp_path):
    draw(run, tmp_path, 'speed-1')
    names = picture_names(run, 'speed-1')
    assert names == ['speed-1-ratios.png', 'speed-1-growth.png']
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    assert all(cv2.imread(str(tmp_path / name)).std() > 0 for name in names)


@pytest.mark.parametrize(('part', 'kind'), [(slice(2), 'ratios'), (slice(2, None), 'growth')])
def test_only_what_there_is_to_draw(run, part, kind):
    run.groups = [run.groups[0][part]]
    assert picture_names(run, 'x') == [f'x-{kind}.png']


def test_bars_are_the_ratios(run):
    first, second = plots._ratios(run).axes
    widths = [bar.get_width() for bar in first.patches]
    # time of three models, then memory; one did not run
    assert widths == pytest.approx([1.0, 2.0, 0.0, 1.0, 0.5, 0.0])
    labels = [label.get_text() for label in first.get_yticklabels()]
    assert labels == ['reference:A', 'mmvit_ext:A\narch=tiny', 'timm:b']
    assert first.get_title() == '4 x 3 x 224 x 224\nforward, float32'
    assert second.get_title() == '2 x 3 x 224 x 224\ntrain, float32'


def test_lines_are_times_and_memory(run):
    time_axes, memory_axes = plots._growth(run).axes
    assert time_axes.get_xscale() == time_axes.get_yscale() == 'log'
    times, memories = (
        [line.get_ydata() for line in axes.lines] for axes in (time_axes, memory_axes)
    )
    assert list(time_axes.lines[0].get_xdata()) == [64**2, 128**2, 256**2]
    assert list(times[1]) == pytest.approx([1.1] * 3) and list(memories[1]) == [40.0] * 3
    assert all(map(math.isnan, times[2])) and all(map(math.isnan, memories[2]))
