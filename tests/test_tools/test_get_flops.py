"""The table of sizes and work in the documentation, and the tool that writes it."""

import json
from pathlib import Path

import pytest
import torch
from mmengine.registry import MODELS

from mmvit_ext.analysis import count
from mmvit_ext.engine.cli import flops_parser
from mmvit_ext.engine.complexity_table import (
    agrees,
    config_complexity,
    count_table,
    get_flops,
    read_table,
    table_page,
)
from mmvit_ext.errors import UsageError

DOCS = Path(__file__).parents[2] / 'docs'
CONFIGS = Path(__file__).parents[2] / 'configs' / 'demo'

# Parameters in millions and multiply-adds in billions that follow from the layer shapes of
# microsoft/SPACH (models/shiftvit.py, models/registry.py), with a classifier of 1000 classes.
SHIFTVIT = {
    'Shift-T/light': (19.61, 2.96),
    'Shift-T': (28.57, 4.58),
    'Shift-T, tau = 4': (31.43, 4.58),
    'Shift-S/light': (33.80, 5.74),
    'Shift-S': (50.30, 8.74),
    'Shift-S, tau = 4': (51.52, 8.51),
    'Shift-B/light': (59.71, 10.19),
    'Shift-B': (89.03, 15.54),
    'Shift-B, tau = 4': (87.27, 15.13),
}
# Parameters of the models that ADiko1997/ReViT and huawei-noah/Efficient-AI-Backbones
# (augvit_pytorch) build.
PARAMETERS = {
    'ReViT-B': 86_566_121,
    'ReMViTv2-T': 24_173_321,
    'Aug-ViT-S': 22_142_824,
    'Aug-ViT-S, one path': 22_096_744,
    'Aug-ViT-S, two linear paths': 29_146_984,
    'Aug-ViT-S, one linear path': 25_598_824,
}
# Billions of multiply-adds as printed: ADiko1997/ReViT (Readme.md), table 2 of arXiv 2106.15941
# (DeiT), facebookresearch/mvit (README.md).
PRINTED = {
    'ReViT-B': 17.5,
    'ReMViTv2-T': 4.7,
    'MViTv2-T': 4.7,
    'MViTv2-S': 7.0,
    'MViTv2-B': 10.2,
    'ReSwin-T': 4.5,
    'DeiT-S': 4.6,
    'DeiT-B': 17.6,
    'DeiT-B, 384 pixels': 55.6,
}
# Millions of parameters, and billions of multiply-adds without those of attention, in mmpretrain's
# configs/swin_transformer/README.md; channels and depths of the stages.
SWIN = {
    'Swin-T': (28.29, 4.36, 96, (2, 2, 6, 2)),
    'Swin-S': (49.61, 8.52, 96, (2, 2, 18, 2)),
    'Swin-B': (87.77, 15.14, 128, (2, 2, 18, 2)),
}


@pytest.fixture(scope='module')
def table():
    return read_table(str(DOCS / 'complexity.json'))


@pytest.fixture(scope='module')
def counted(table):
    names = [entry['model'] for entry in table['models']]
    assert len(set(names)) == len(names)
    return dict(zip(names, count_table(table), strict=True))


def test_page_is_what_the_tool_writes(table, counted):
    page = (DOCS / 'complexity.md').read_text(encoding='utf-8')
    assert page == table_page(table, list(counted.values()))


@pytest.mark.parametrize('name', SHIFTVIT)
def test_shiftvit(counted, name):
    parameters, multiply_adds = SHIFTVIT[name]
    assert round(counted[name].parameters / 1e6, 2) == parameters
    assert counted[name].multiply_adds / 1e9 == pytest.approx(multiply_adds, rel=0.01)


@pytest.mark.parametrize('name', PARAMETERS)
def test_parameters_are_those_of_the_published_code(counted, name):
    assert counted[name].parameters == PARAMETERS[name]


@pytest.mark.parametrize('name', PRINTED)
def test_multiply_adds_are_those_printed(counted, name):
    assert counted[name].multiply_adds / 1e9 == pytest.approx(PRINTED[name], rel=0.01)


@pytest.mark.parametrize('name', SWIN)
def test_swin_is_the_printed_figure_and_its_attention(counted, name):
    parameters, multiply_adds, dim, depths = SWIN[name]
    # maps of 56, 28, 14 and 7 cells a side, windows of 49 cells, two products a block
    attention = sum(
        2 * depth * (56 // 2**i) ** 2 * 49 * dim * 2**i for i, depth in enumerate(depths)
    )
    assert round(counted[name].parameters / 1e6, 2) == parameters
    work = (counted[name].multiply_adds - attention) / 1e9
    assert work == pytest.approx(multiply_adds, rel=0.01)


@pytest.mark.parametrize(('size', 'dim'), [('S', 384), ('B', 768)])
def test_augmented_shortcuts_cost_by_the_form_of_their_product(counted, size, dim):
    plain = counted[f'DeiT-{size}'].multiply_adds
    whole = counted[f'Aug-ViT-{size}, matrix materialised'].multiply_adds
    # 12 blocks of 4 paths over 197 tokens: 1.39 and 5.58 billion
    assert whole - plain == 12 * 4 * 197 * dim * dim
    assert plain < counted[f'Aug-ViT-{size}'].multiply_adds < whole


def test_augmented_shortcuts_add_few_parameters(counted):
    assert round(counted['Aug-ViT-B'].parameters / 1e6, 2) == 86.75
    # 12 blocks of 4 paths, each of 4 x 4 blocks with d / 4 numbers, and d biases
    added = counted['Aug-ViT-B'].parameters - counted['DeiT-B'].parameters
    assert added == 12 * 4 * (4 * 768 + 768)


@pytest.mark.parametrize('method', ['ReSwin', 'ReMViTv2'])
def test_residual_attention_adds_no_products(counted, method):
    plain = method.removeprefix('Re')
    for size in 'TSB':
        assert counted[f'{method}-{size}'].multiply_adds == counted[f'{plain}-{size}'].multiply_adds


def test_figures_agree_within_their_rounding():
    assert agrees(4_549_000_000, '4.5G') and not agrees(4_580_000_000, '4.5G')
    assert agrees(28_570_000, '29M') and not agrees(28_290_000, '29M')
    assert agrees(123, '123') and not agrees(124, '123')


def test_page_shows_figures_sources_and_disagreements():
    entry = {
        'model': 'Name',
        'backbone': {'type': 'mmvit_ext.ShiftViT', 'arch': 'nano'},
        'image': 32,
        'printed': {'parameters': '9M', 'multiply_adds': '0.01G', 'source': 'a paper'},
        'note': 'a note',
    }
    table = {'classes': 10, 'models': [entry]}
    row = table_page(table, count_table(table)).splitlines()[-1]
    with torch.device('meta'):
        counted = count(MODELS.build(entry['backbone']), (32, 32)).with_classifier(384, 10)
    millions = f'{counted.parameters / 1e6:.2f} M'
    billions = f'{counted.multiply_adds / 1e9:.2f} G'
    assert row.startswith(f'| Name | 32 | {millions} | {billions} | 9M / 0.01G, a paper |  | ')
    assert row.endswith(f'{millions} against 9 M; a note |')


def test_classifier_config_counts_backbone_and_model():
    path = str(CONFIGS / 'reswin-nano_digits-cls.py')
    (name, backbone), (_, model) = config_complexity(path, (32, 32))
    assert name == 'backbone mmvit_ext.ReSwin'
    assert model == backbone.with_classifier(384, 10)


def test_segmentor_config_counts_the_heads_too():
    path = str(CONFIGS / 'upernet_reswin-nano_digits.py')
    (_, backbone), (_, model) = config_complexity(path, (64, 64))
    assert model.multiply_adds > backbone.multiply_adds > 0


def test_detector_config_counts_the_backbone():
    path = str(CONFIGS / 'cascade-mask-rcnn_reswin-nano_digits.py')
    assert len(list(config_complexity(path, (64, 96)))) == 1


def test_tool_prints_and_writes(tool, tmp_path):
    config = CONFIGS / 'reswin-nano_digits-cls.py'
    printed = tool('analysis_tools/get_flops.py', config, '--size', 32, 32).stdout
    (_, backbone), _ = config_complexity(str(config), (32, 32))
    assert f'{backbone.parameters:,} parameters, {backbone.multiply_adds:,} mul' in printed
    models = [
        {'model': 'N', 'backbone': {'type': 'mmvit_ext.ShiftViT', 'arch': 'nano'}, 'image': 32}
    ]
    path = tmp_path / 'list.json'
    path.write_text(json.dumps({'classes': 10, 'models': models}), encoding='utf-8')
    tool('analysis_tools/get_flops.py', '--table', path)
    assert '| N | 32 |' in (tmp_path / 'list.md').read_text(encoding='utf-8')


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        ([], 'either a config or --table'),
        (['a.py', '--table', 'b.json'], 'either a config or --table'),
        (['nowhere.py'], 'no such file'),
        (['--table', 'nowhere.json'], 'no such file'),
        (['a.py', '--size', '0', '32'], '1 or more pixels'),
    ],
)
def test_wrong_arguments_are_told(arguments, message):
    with pytest.raises(UsageError, match=message):
        get_flops(flops_parser().parse_args(arguments))


@pytest.mark.parametrize('text', ['', '[]', '{"models": []}', '{"classes": 1, "models": [{}]}'])
def test_other_json_is_told(tmp_path, text):
    path = tmp_path / 'list.json'
    path.write_text(text, encoding='utf-8')
    with pytest.raises(UsageError, match='complexity.json'):
        get_flops(flops_parser().parse_args(['--table', str(path)]))
