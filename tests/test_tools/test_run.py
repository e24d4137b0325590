"""Training, testing and predicting through the tools, for all three kinds of model."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from mmengine.config import Config

from mmvit_ext.engine import cli
from mmvit_ext.engine.cli import predict_parser, train_parser
from mmvit_ext.engine.predict import find_pictures, predict
from mmvit_ext.engine.run import test as run_test
from mmvit_ext.engine.run import train
from mmvit_ext.errors import UsageError

ROOT = Path(__file__).parents[2]
DETECTOR = 'configs/demo/cascade-mask-rcnn_reswin-nano_digits.py'
SEGMENTOR = 'configs/demo/upernet_reswin-nano_digits.py'
CLASSIFIER = 'configs/demo/reswin-nano_digits-cls.py'

# Enough to run each part once: no workers, two images a batch.
SMALL = [
    'train_dataloader.batch_size=2',
    *(
        f'{part}_dataloader.{key}'
        for part in ('train', 'val', 'test')
        for key in ('num_workers=0', 'persistent_workers=False')
    ),
    'default_hooks.logger.interval=1',
]
EPOCHS = 'train_cfg.max_epochs'
RUNS = {
    'coco': (DETECTOR, [f'{EPOCHS}=1', 'train_cfg.val_interval=1'], 'epoch_1.pth'),
    'imagenet': (CLASSIFIER, [f'{EPOCHS}=1', 'train_cfg.val_interval=1'], 'epoch_1.pth'),
    'ade': (
        SEGMENTOR,
        [
            'train_cfg.max_iters=2',
            'train_cfg.val_interval=2',
            'default_hooks.checkpoint.interval=2',
        ],
        'iter_2.pth',
    ),
}
METRICS = {
    'coco': {'coco/bbox_mAP', 'coco/segm_mAP'},
    'imagenet': {'accuracy/top1'},
    'ade': {'mIoU'},
}


def records(work_dir):
    """What mmengine logged below a work dir: a dict for each line, in order."""
    files = sorted(Path(work_dir).glob('*/vis_data/scalars.json'))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.fixture
def fresh(monkeypatch):
    """Lets a launcher's rank be set by the test alone."""
    monkeypatch.delenv('LOCAL_RANK', raising=False)


@pytest.mark.slow
@pytest.mark.parametrize('layout', RUNS)
def test_trains_tests_and_predicts(layout, digits, tmp_path):
    config, options, checkpoint = RUNS[layout]
    data, work = str(digits[layout]), str(tmp_path / 'w')
    common = ['--data-root', data, '--work-dir', work, '--cfg-options', *SMALL, *options]
    train(train_parser().parse_args([config, '--seed', '0', *common]))
    losses = [r['loss'] for r in records(work) if 'loss' in r]
    assert losses and all(torch.tensor(losses).isfinite())
    assert any(METRICS[layout] <= set(r) for r in records(work))

    file = f'{work}/{checkpoint}'
    run_test(cli.test_parser().parse_args([config, file, *common]))

    pictures = sorted(digits[layout].glob('**/*val*/**/*.jpg'))[:2]
    folder, out = tmp_path / 'in', tmp_path / 'out'
    folder.mkdir()
    for picture in pictures:
        shutil.copy(picture, folder)
    predict(predict_parser().parse_args([config, file, str(folder), '--out', str(out)]))
    for picture in pictures:
        drawn, text = out / picture.name, out / f'{picture.name}.json'
        assert drawn.stat().st_size > 500
        record = json.loads(text.read_text())
        assert record['image'] == str(folder / picture.name)
        if layout == 'coco':
            assert all(0.3 <= d['score'] <= 1 for d in record['detections'])
        elif layout == 'ade':
            assert sum(record['pixels'].values()) == 96 * 96
        else:
            assert record['label'].startswith('digit_') and 0 < record['score'] <= 1


def small_training(digits, work):
    """Arguments of a three-epoch detector run: four iterations an epoch."""
    options = [*SMALL, f'{EPOCHS}=3', 'train_cfg.val_interval=10']
    options.append('train_dataloader.dataset.filter_cfg.filter_empty_gt=False')
    where = ['--data-root', str(digits['coco']), '--work-dir', str(work), '--seed', '0']
    return [DETECTOR, *where, '--cfg-options', *options]


@pytest.mark.slow
@pytest.mark.tools
def test_resume_after_kill_goes_on_with_iteration_and_rate(digits, tool, tmp_path):
    killed, unbroken = tmp_path / 'killed', tmp_path / 'unbroken'
    command = [sys.executable, 'tools/train.py', *small_training(digits, killed)]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    last, deadline = killed / 'last_checkpoint', time.monotonic() + 300
    while not last.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.returncode == -signal.SIGKILL
    epoch = int(Path(last.read_text().strip()).stem.removeprefix('epoch_'))
    assert epoch < 3

    tool('train.py', '--resume', 'auto', *small_training(digits, killed))
    tool('train.py', *small_training(digits, unbroken))
    resumed = [r for r in records(killed) if 'loss' in r]
    expected = {r['step']: r for r in records(unbroken) if 'loss' in r}
    first_run = max(i for i, r in enumerate(resumed) if r['step'] == 4 * epoch + 1)
    for record in resumed[first_run:]:
        assert record['lr'] == pytest.approx(expected[record['step']]['lr'], rel=1e-9)
    assert resumed[-1]['step'] == 12


@pytest.mark.tools
def test_missing_data_stop_early_with_one_line(tool, tmp_path):
    config = 'configs/cascade_rcnn_reswin_t_coco.py'
    init = 'model.backbone.init_cfg'
    result = tool(
        'train.py', config, '--data-root', tmp_path / 'none', '--work-dir', tmp_path / 'w',
        '--cfg-options', f'{init}.type=Pretrained', f'{init}.checkpoint=https://x.invalid/w.pth',
        check=False,
    )  # fmt: skip
    assert result.returncode == 2
    error = [line for line in result.stderr.splitlines() if line.startswith('error: ')]
    assert len(error) == 1 and f'{tmp_path}/none' in error[0]
    assert 'train_dataloader.dataset.data_root' in error[0] and 'make_digits.py' in error[0]
    assert 'x.invalid' not in result.stderr and not (tmp_path / 'w').exists()


@pytest.mark.tools
@pytest.mark.parametrize('script', ['train.py', 'test.py', 'predict.py'])
def test_help_from_another_folder(tool, script, tmp_path):
    assert 'config' in tool(script, '--help', cwd=tmp_path).stdout


@pytest.mark.slow
@pytest.mark.tools
@pytest.mark.parametrize('flag', ['--local-rank=0', '--local_rank=0'])
def test_odd_folders_and_both_rank_flags(flag, digits, tool, tmp_path):
    odd = tmp_path / 'a b' / 'é'
    shutil.copytree(ROOT / 'configs', odd / 'configs')
    config, options, _ = RUNS['ade']
    tool(
        'train.py', odd / config, flag, '--data-root', digits['ade'], '--work-dir', odd / 'w',
        '--cfg-options', *SMALL, *options,
    )  # fmt: skip
    made = [str(p.relative_to(odd)) for p in (odd / 'w').rglob('*')]
    assert made and not any(':' in name for name in made)
    assert (odd / 'w' / 'iter_2.pth').is_file()


@pytest.mark.tools
def test_rank_flag_sets_the_environment(fresh, monkeypatch):
    monkeypatch.setattr(sys, 'argv', ['train.py', 'c.py', '--local-rank', '3'])
    cli.run_tool(lambda args: None, train_parser())
    assert os.environ.pop('LOCAL_RANK') == '3'


def test_usage_errors_are_one_line_and_exit_two(monkeypatch, capsys):
    def fail(args):
        raise UsageError('field=1: too small; give 2')

    monkeypatch.setattr(sys, 'argv', ['train.py', 'c.py'])
    with pytest.raises(SystemExit) as stop:
        cli.run_tool(fail, train_parser())
    assert stop.value.code == 2 and capsys.readouterr().err == 'error: field=1: too small; give 2\n'


def test_missing_checkpoint_is_named():
    with pytest.raises(UsageError, match='checkpoint=none.pth: no such file'):
        run_test(cli.test_parser().parse_args([DETECTOR, 'none.pth']))


def test_given_pictures_are_never_replaced(tmp_path):
    (tmp_path / 'a.jpg').write_bytes(b'mine')
    args = [CLASSIFIER, 'w.pth', str(tmp_path), '--out', f'{tmp_path}/../{tmp_path.name}']
    with pytest.raises(UsageError, match='--out=.*would replace.*another folder'):
        predict(predict_parser().parse_args(args))
    assert (tmp_path / 'a.jpg').read_bytes() == b'mine'


def test_pictures_of_a_folder(tmp_path):
    for name in ('b.png', 'a.JPG', 'notes.txt'):
        (tmp_path / name).touch()
    assert [p.name for p in find_pictures(str(tmp_path))] == ['a.JPG', 'b.png']
    assert find_pictures(str(tmp_path / 'b.png')) == [tmp_path / 'b.png']
    with pytest.raises(UsageError, match='no such picture or folder'):
        find_pictures(str(tmp_path / 'c.png'))
    (tmp_path / 'empty').mkdir()
    with pytest.raises(UsageError, match='no picture there'):
        find_pictures(str(tmp_path / 'empty'))


@pytest.mark.slow
def test_unreadable_picture_is_named_and_the_others_are_done(digits, tmp_path):
    from mmengine.registry import MODELS, init_default_scope

    cfg = Config.fromfile(CLASSIFIER)
    init_default_scope('mmpretrain')
    checkpoint = tmp_path / 'w.pth'
    torch.save({'state_dict': MODELS.build(cfg.model).state_dict()}, checkpoint)
    folder, out = tmp_path / 'in', tmp_path / 'out'
    folder.mkdir()
    shutil.copy(next(digits['imagenet'].glob('val/**/*.jpg')), folder / 'good.jpg')
    (folder / 'bad.jpg').write_bytes(b'no picture')
    args = [CLASSIFIER, str(checkpoint), str(folder), '--out', str(out)]
    with pytest.raises(UsageError, match='1 of 2 pictures could not be read: .*bad.jpg'):
        predict(predict_parser().parse_args(args))
    assert sorted(p.name for p in out.iterdir()) == ['good.jpg', 'good.jpg.json']
