"""The configs hold the recipes that the papers and the authors' code state, number for number."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope

CONFIGS = Path(__file__).parents[2] / 'configs'


@dataclass(frozen=True)
class Recipe:
    """What a source states; batch is images a step of the optimizer."""

    lr: float
    decay: float
    batch: int
    length: int
    warm_up: int
    start: float
    steps: tuple = ()
    end: float = 0.0
    clip: float | None = None
    repeated: bool = False
    ema: float | None = None


SPACH = Recipe(1e-3, 0.05, 1024, 300, 20, 1e-6, end=1e-5, repeated=True, ema=0.99996)
AUGVIT = Recipe(1e-3, 0.05, 1024, 300, 5, 1e-6, end=1e-5, repeated=True, ema=0.99996)
SWIN = Recipe(1e-3, 0.05, 1024, 300, 20, 1e-6, end=1e-5, clip=5.0)
RESWIN = Recipe(1e-3, 0.05, 1024, 300, 20, 1e-5, end=1e-5)
REMVIT = Recipe(2e-3, 0.05, 2048, 300, 70, 1e-5, end=1e-5, clip=1.0)
REVIT = Recipe(1e-3, 0.3, 4096, 300, 30, 1e-7, end=3e-7, clip=1.0)
SWIN_1X = Recipe(1e-4, 0.05, 16, 12, 500, 1e-7, steps=(8, 11))
SWIN_3X = Recipe(1e-4, 0.05, 16, 36, 500, 1e-7, steps=(27, 33))
MVIT_1X = Recipe(1.6e-4, 0.1, 64, 12, 250, 1.6e-7, steps=(8, 11))
MVIT_3X = Recipe(1.6e-4, 0.1, 64, 36, 250, 1.6e-7, steps=(27, 33))
UPERNET = Recipe(6e-5, 0.01, 16, 160000, 1500, 6e-11)
TRANSFER = Recipe(1e-4, 0.05, 512, 100, 5, 1e-7, end=1e-6, clip=1.0)

IN1K = {
    SPACH: [f'shiftvit-{kind}{arch}' for kind in ('', 'light-', 'r4-') for arch in 'tsb'],
    AUGVIT: ['augvit-s', 'augvit-b', 'deit-s', 'deit-b'],
    SWIN: [f'{family}-{arch}_16' for family in ('augswin', 'swin') for arch in 'tsb'],
    RESWIN: ['reswin-t', 'swin-t_1xb256'],
    REMVIT: ['remvitv2-t', 'mvitv2-t'],
    REVIT: ['revit-b', 'vit-b'],
}
SETS = ('cifar10', 'cifar100', 'flowers102', 'pets')


def the_config(start, end):
    (file,) = [f for f in CONFIGS.rglob(f'{start}*{end}.py') if 'ablations' not in f.parts]
    return file


def rows():
    for recipe, starts in IN1K.items():
        yield from ((the_config(f'{s}' if '_' in s else f'{s}_', '_in1k'), recipe) for s in starts)
    for detector in ('mask-rcnn', 'cascade-mask-rcnn'):
        for sched, swin, mvit in (('1x', SWIN_1X, MVIT_1X), ('3x', SWIN_3X, MVIT_3X)):
            wide = [f'{family}-{arch}' for family in ('shiftvit', 'augswin') for arch in 'tsb']
            for backbone in [*wide, 'swin-t', 'reswin-t']:
                yield the_config(f'{detector}_{backbone}_', f'-{sched}_coco'), swin
            for backbone in ('remvitv2-t', 'mvitv2-t'):
                yield the_config(f'{detector}_{backbone}_', f'-{sched}_coco'), mvit
    wide = [f'{family}-{arch}' for family in ('shiftvit', 'augswin') for arch in 'tsb']
    for backbone in [*wide, 'swin-t', 'reswin-t', 'remvitv2-t', 'revit-b']:
        yield the_config(f'upernet_{backbone}_', '_ade20k-512x512'), UPERNET
    for backbone in ('revit-b', 'vit-b', 'augvit-s'):
        for data in SETS:
            yield the_config(f'{backbone}_8xb64_', data), TRANSFER


ROWS = list(rows())


def test_every_config_of_the_papers_has_a_recipe():
    told = {file for file, _ in ROWS}
    variants = set(CONFIGS.rglob('*-linear_*.py'))
    others = {f for f in CONFIGS.rglob('*.py') if {'_base_', 'demo', 'ablations'} & {*f.parts}}
    doors = set(CONFIGS.glob('*.py'))
    assert set(CONFIGS.rglob('*.py')) - others - doors - variants == told
    assert len(variants) == 2


@pytest.mark.parametrize(('file', 'recipe'), ROWS, ids=lambda v: getattr(v, 'stem', ''))
def test_recipe(file, recipe):
    cfg = Config.fromfile(file)
    wrapper, (warm_up, decline) = cfg.optim_wrapper, cfg.param_scheduler
    assert wrapper.optimizer.type == 'AdamW' and tuple(wrapper.optimizer.betas) == (0.9, 0.999)
    assert (wrapper.optimizer.lr, wrapper.optimizer.weight_decay) == (recipe.lr, recipe.decay)
    accumulated = wrapper.get('accumulative_counts', 1)
    assert cfg.auto_scale_lr.base_batch_size * accumulated == recipe.batch
    assert cfg.train_cfg.get('max_epochs', cfg.train_cfg.get('max_iters')) == recipe.length
    assert (warm_up.type, warm_up.end) == ('LinearLR', recipe.warm_up)
    assert warm_up.start_factor * recipe.lr == pytest.approx(recipe.start)
    assert decline.end == recipe.length
    if recipe.steps:
        assert (decline.type, tuple(decline.milestones)) == ('MultiStepLR', recipe.steps)
    else:
        assert decline.type in ('CosineAnnealingLR', 'PolyLR')
        assert (decline.begin, decline.eta_min) == (recipe.warm_up, recipe.end)
    assert wrapper.get('clip_grad') == (recipe.clip and {'max_norm': recipe.clip})
    repeated = cfg.train_dataloader.sampler.type == 'RepeatAugSampler'
    assert repeated == recipe.repeated
    ema = [1 - h.momentum for h in cfg.get('custom_hooks', []) if h.type == 'EMAHook']
    assert ema == pytest.approx([recipe.ema] if recipe.ema else [])


# Stochastic depth: SPACH models/registry.py; ReViT config/*.yaml; augvit readme; Swin's configs.
DROP_PATH = {
    'shiftvit-t_8xb128_in1k': 0.2,
    'shiftvit-s_8xb128_in1k': 0.4,
    'shiftvit-b_8xb128_in1k': 0.6,
    'shiftvit-light-b_8xb128_in1k': 0.5,
    'shiftvit-r4-s_8xb128_in1k': 0.4,
    'reswin-t_1xb256-acc4_in1k': 0.1,
    'remvitv2-t_2xb128-acc8_in1k': 0.1,
    'revit-b_2xb128-acc16_in1k': 0.2,
    'augvit-s_8xb128_in1k': 0.1,
    'swin-t_16xb64_in1k': 0.2,
    'swin-b_16xb64_in1k': 0.5,
    'mask-rcnn_swin-t_8xb2-ms-crop-1x_coco': 0.1,
    'mask-rcnn_swin-t_8xb2-ms-crop-3x_coco': 0.2,
    'cascade-mask-rcnn_shiftvit-s_8xb2-ms-crop-1x_coco': 0.0,
    'cascade-mask-rcnn_reswin-t_8xb2-ms-3x_coco': 0.2,
    'mask-rcnn_mvitv2-t_8xb8-ms-crop-3x_coco': 0.2,
    'upernet_shiftvit-b_8xb2-160k_ade20k-512x512': 0.3,
}


@pytest.mark.parametrize('stem', DROP_PATH)
def test_last_block_has_the_published_drop_path(stem):
    cfg = Config.fromfile(the_config(stem, ''))
    with torch.device('meta'), DefaultScope.overwrite_default_scope(cfg.default_scope):
        backbone = MODELS.build(cfg.model.backbone)
    rates = [getattr(m, 'drop_prob', 0.0) for m in backbone.modules()]
    assert max(rates) == pytest.approx(DROP_PATH[stem])


@pytest.mark.parametrize(
    ('stem', 'policies', 'erased', 'augments'),
    [
        ('shiftvit-t_8xb128_in1k', 2, 0.25, {'Mixup': 0.8, 'CutMix': 1.0}),
        ('augvit-s_8xb128_in1k', 2, 0.25, {'Mixup': 0.8, 'CutMix': 1.0}),
        ('reswin-t_1xb256-acc4_in1k', 6, 0.1, {'Mixup': 0.8}),
        ('remvitv2-t_2xb128-acc8_in1k', 6, 0.25, {'Mixup': 0.8, 'CutMix': 1.0}),
        ('revit-b_2xb128-acc16_in1k', 6, 0.25, {'Mixup': 0.8, 'CutMix': 1.0}),
    ],
)
def test_augmentation(stem, policies, erased, augments):
    cfg = Config.fromfile(the_config(stem, ''))
    pipeline = {step.type: step for step in cfg.train_dataloader.dataset.pipeline}
    augment = pipeline['RandAugment']
    assert augment.num_policies == policies
    assert (augment.magnitude_level, augment.total_level, augment.magnitude_std) == (9, 10, 0.5)
    assert pipeline['RandomErasing'].erase_prob == erased
    assert {a.type: a.alpha for a in cfg.model.train_cfg.augments} == augments
    assert cfg.model.head.loss.label_smooth_val == 0.1


@pytest.mark.parametrize('file', sorted(CONFIGS.rglob('*_coco.py')), ids=lambda f: f.stem)
def test_coco_images_are_resized_as_the_recipe_says(file):
    pipeline = Config.fromfile(file).train_dataloader.dataset.pipeline
    if '-ms-crop-' in file.stem:
        (plain,), (smaller, crop, resize) = [
            choice for step in pipeline if step.type == 'RandomChoice' for choice in step.transforms
        ]
        assert [s[0] for s in smaller.scales] == [400, 500, 600]
        assert tuple(crop.crop_size) == (384, 600) and resize == plain
    else:
        (plain,) = [step for step in pipeline if step.type == 'RandomChoiceResize']
    assert {tuple(s) for s in plain.scales} == {(480 + 32 * i, 1333) for i in range(11)}


@pytest.mark.parametrize(
    ('door', 'config', 'millions'),
    [
        ('cascade_rcnn_reswin_t_coco', 'cascade-mask-rcnn_reswin-t_8xb2-ms-3x_coco', 86),
        ('mask_rcnn_reswin_t_coco', 'mask-rcnn_reswin-t_8xb2-ms-3x_coco', 48),
    ],
)
def test_front_doors(door, config, millions):
    cfg = Config.fromfile(CONFIGS / f'{door}.py')
    assert cfg.to_dict() == Config.fromfile(CONFIGS / 'reswin' / f'{config}.py').to_dict()
    with torch.device('meta'), DefaultScope.overwrite_default_scope('mmdet'):
        parameters = sum(p.numel() for p in MODELS.build(cfg.model).parameters())
    assert parameters / 1e6 == pytest.approx(millions, abs=0.5)
