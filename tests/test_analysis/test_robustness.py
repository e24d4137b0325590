"""Accuracies of models whose answer follows from where the one bright pixel is."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from mmengine.registry import TRANSFORMS

from mmvit_ext.analysis.robustness import Robustness, measure, page, record, top1
from mmvit_ext.analysis.robustness_plot import plot
from mmvit_ext.errors import UsageError

SHARES = (0.15, 0.3, 0.45, 0.6)
COLUMNS = (0, 3, 6, 9)

# Images of 10 x 10, whose bright pixel is in row 5 and column 0, 3, 6 or 9. It moves by 2, 3, 4
# and 6 pixels (1.5 and 4.5 round to even); where it has left, column 0 is taken for the brightest.
RIGHT_HALF = {
    'horizontal': [50, 50, 25, 0],
    'vertical': [100, 100, 100, 50],
    'shrink': [100, 100, 100, 100],
}
# Shrinking leaves none in the outermost columns, 0 and 9. Moving by 2 takes the pixel of column 0
# out of them; by 3 and 6 it brings those of columns 6 and 3 there; a pixel that has left counts as
# there, rightly for column 9 alone.
OUTERMOST = {
    'horizontal': [75, 50, 50, 25],
    'vertical': [100, 100, 100, 50],
    'shrink': [50, 50, 50, 50],
}


class Column:
    """Tells something of the brightest column."""

    def __init__(self, answer):
        self.answer = answer

    def test_step(self, batch):
        found = [self.answer(int(image.sum(axis=(0, 2)).argmax())) for image, _ in batch]
        return [sample(label, answer) for (_, label), answer in zip(batch, found)]


def sample(given, found):
    return SimpleNamespace(gt_label=torch.tensor([given]), pred_label=torch.tensor([found]))


def batches(answer):
    """The test set, changed by a transform, in batches of three and one."""

    def load(transform):
        change = TRANSFORMS.build(transform) if transform else lambda results: results
        items = []
        for column in COLUMNS:
            image = np.zeros((10, 10, 3), np.uint8)
            image[5, column] = 255
            items.append((change({'img': image})['img'], answer(column)))
        return [items[:3], items[3:]]

    return load


@pytest.mark.parametrize(
    'answer, expected',
    [(lambda x: int(x >= 5), RIGHT_HALF), (lambda x: int(x in (0, 9)), OUTERMOST)],
    ids=['right half', 'outermost'],
)
def test_accuracy_under_every_change(answer, expected):
    result = measure('toy', Column(answer), batches(answer), SHARES)
    assert (result.images, result.untouched) == (4, 100)
    found = {kind: [result.top1[kind, share] for share in SHARES] for kind in expected}
    assert found == expected
    assert result.lost('horizontal', 0.6) == 100 - expected['horizontal'][3]


def test_untouched_accuracy_counts_single_images():
    model = SimpleNamespace(test_step=lambda batch: [sample(*pair) for pair in batch])
    assert top1(model, [[(1, 1), (2, 0)], [(3, 3)]]) == (pytest.approx(200 / 3), 3)


@pytest.mark.parametrize(
    'given, found, field',
    [([1, 2], [1], 'gt_label'), (None, [1], 'gt_label'), ([1], [1, 2], 'pred_label')],
)
def test_images_of_no_label_or_several_are_refused(given, found, field):
    labels = [None if label is None else torch.tensor(label) for label in (given, found)]
    answers = [SimpleNamespace(gt_label=labels[0], pred_label=labels[1])]
    model = SimpleNamespace(test_step=lambda batch: answers)
    with pytest.raises(UsageError, match=f'{field}=.*one label an image'):
        top1(model, [None])


def test_no_images_are_refused():
    with pytest.raises(UsageError, match='no test images'):
        top1(SimpleNamespace(test_step=lambda batch: []), [])


FIRST = Robustness('a', 1000, 80.0, {('horizontal', 0.15): 78.1, ('shrink', 0.6): 30.0})
SECOND = Robustness('b', 1000, 79.0, {('horizontal', 0.15): 74.2, ('shrink', 0.6): 31.0})


def test_page_of_two_models_has_the_difference_of_losses():
    text = page([FIRST, SECOND]).splitlines()
    assert text[0].startswith('Top-1 accuracy in percent on 1000 test images')
    assert text[3:] == [
        '| kind | share | a: top-1 | lost | b: top-1 | lost | first loses less by |',
        '| --- | --- | --- | --- | --- | --- | --- |',
        '| untouched | 0 % | 80.00 |  | 79.00 |  |  |',
        '| horizontal | 15 % | 78.10 | 1.90 | 74.20 | 4.80 | +2.90 |',
        '| shrink | 60 % | 30.00 | 50.00 | 31.00 | 48.00 | -2.00 |',
    ]
    assert page([FIRST]).splitlines()[6] == '| horizontal | 15 % | 78.10 | 1.90 |'


def test_equal_losses_differ_by_plain_zero():
    # both lose 49.3, which floats miss by some 1e-14
    one = Robustness('a', 1000, 80.1, {('shrink', 0.6): 30.8})
    other = Robustness('b', 1000, 79.4, {('shrink', 0.6): 30.1})
    for pair in ([one, other], [other, one]):
        assert page(pair).splitlines()[-1].endswith('| +0.00 |')
        assert str(record(pair)['first_loses_less_by'][0]['points']) == '0.0'


def test_record_names_every_number():
    found = record([FIRST, SECOND])
    assert found['models'][1] == {
        'name': 'b',
        'images': 1000,
        'untouched_top1': 79.0,
        'rows': [
            {'kind': 'horizontal', 'share': 0.15, 'top1': 74.2, 'lost': 4.8},
            {'kind': 'shrink', 'share': 0.6, 'top1': 31.0, 'lost': 48.0},
        ],
    }
    assert found['first_loses_less_by'] == [
        {'kind': 'horizontal', 'share': 0.15, 'points': 2.9},
        {'kind': 'shrink', 'share': 0.6, 'points': -2.0},
    ]
    assert 'first_loses_less_by' not in record([FIRST])


def test_plot_has_labelled_axes_and_a_line_a_model(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    drawn = []
    save = Figure.savefig
    monkeypatch.setattr(
        Figure, 'savefig', lambda self, *args, **kw: (drawn.append(self), save(self, *args, **kw))
    )
    plot([FIRST, SECOND], tmp_path / 'a.png')
    panels = drawn[0].axes
    assert [axes.get_title() for axes in panels] == [
        'horizontal translation', 'vertical translation', 'shrinking',
    ]  # fmt: skip
    assert {axes.get_xlabel() for axes in panels} == {'share of the side (%)'}
    assert panels[0].get_ylabel() == 'top-1 accuracy (%)'
    lines = [line.get_xydata().tolist() for line in panels[2].lines]
    assert lines == [[[0, 80], [60, 30]], [[0, 79], [60, 31]]]
    assert [text.get_text() for text in panels[2].get_legend().get_texts()] == ['a', 'b']
    assert (tmp_path / 'a.png').read_bytes()[:4] == b'\x89PNG'
