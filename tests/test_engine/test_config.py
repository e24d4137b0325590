"""A tool's config: what the command line changes, and what it refuses."""

import re

import pytest
import torch
from mmengine.config import Config

from mmvit_ext.engine.cli import train_parser
from mmvit_ext.engine.config import (
    apply_train_options,
    check_batch_norm,
    check_channels,
    read_config,
    run_config,
)
from mmvit_ext.engine.errors import UsageError

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
