"""The whole story in miniature: data, pretraining, detection, evaluation, pictures.

Writes everything below ``work_dirs/demo``; a second run starts over with the same seed.
"""

import argparse
import json
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CLASSIFIER = 'configs/demo/reswin-nano_digits-cls.py'
DETECTOR = 'configs/demo/cascade-mask-rcnn_reswin-nano_digits.py'
FULL = {
    'crops': ['--train', 4000, '--val', 500],
    'scenes': ['--train', 400, '--val', 100],
}
QUICK = {
    'crops': ['--train', 40, '--val', 10],
    'scenes': ['--train', 8, '--val', 8],
}


def run(script: str, *args: object) -> None:
    """Runs one of the tools as a user would, and stops where it fails."""
    command = [sys.executable, str(ROOT / 'tools' / script), *map(str, args)]
    print('$ ' + ' '.join(['python', f'tools/{script}', *map(str, args)]), flush=True)
    subprocess.run(command, cwd=ROOT, check=True)


@contextmanager
def timed(seconds: dict[str, float], name: str):
    """Adds the duration of a step to ``seconds``."""
    start = time.monotonic()
    yield
    seconds[name] = round(time.monotonic() - start, 1)


def last_logged(work_dir: Path, file: str) -> dict[str, float]:
    """What mmengine logged last below a work dir.

    Args:
        work_dir: The run's folder; each start makes one of its own in it.
        file: ``vis_data/scalars.json`` after training, ``*.json`` after testing; one JSON dict a
            line.
    """
    newest = max(work_dir.glob(f'*/{file}'), key=lambda found: found.stat().st_mtime)
    lines = newest.read_text().splitlines()
    return {k: v for line in lines for k, v in json.loads(line).items()}


def main() -> None:
    """Runs the steps and prints where the results are."""
    parser = argparse.ArgumentParser(description='Trains and evaluates on handwritten digits.')
    parser.add_argument('--out', type=Path, default=ROOT / 'work_dirs' / 'demo')
    parser.add_argument(
        '--quick', action='store_true', help='only see that all steps run; the scores mean nothing'
    )
    args = parser.parse_args()
    out, counts = args.out.resolve(), QUICK if args.quick else FULL
    crops, scenes = out / 'data' / 'crops', out / 'data' / 'scenes'
    cls_dir, det_dir, pictures = out / 'classifier', out / 'detector', out / 'predictions'
    seconds: dict[str, float] = {}

    with timed(seconds, 'data'):
        make = 'dataset_converters/make_digits.py'
        run(make, crops, '--layout', 'imagenet', '--size', 32, *counts['crops'])
        run(make, scenes, '--layout', 'coco', '--size', 160, *counts['scenes'])
    with timed(seconds, 'pretrain'):
        run('train.py', CLASSIFIER, '--data-root', crops, '--work-dir', cls_dir, '--seed', 0)
    weights = (cls_dir / 'last_checkpoint').read_text().strip()
    init = 'model.backbone.init_cfg'
    with timed(seconds, 'train'):
        options = [f'{init}.type=Pretrained', f'{init}.checkpoint={weights}']
        where = ['--data-root', scenes, '--work-dir', det_dir]
        run('train.py', DETECTOR, *where, '--seed', 0, '--cfg-options', *options)
    checkpoint = (det_dir / 'last_checkpoint').read_text().strip()
    with timed(seconds, 'test'):
        run('test.py', DETECTOR, checkpoint, '--data-root', scenes, '--work-dir', det_dir / 'test')
    with timed(seconds, 'predict'):
        run('predict.py', DETECTOR, checkpoint, scenes / 'val2017', '--out', pictures, '--limit', 8)

    trained = last_logged(cls_dir, 'vis_data/scalars.json')
    detection = last_logged(det_dir / 'test', '*.json')
    summary = {
        'cls_top1': round(trained['accuracy/top1'] / 100, 4),
        'bbox_mAP': detection['coco/bbox_mAP'],
        'segm_mAP': detection['coco/segm_mAP'],
        'seconds': {**seconds, 'total': round(sum(seconds.values()), 1)},
    }
    (out / 'summary.json').write_text(json.dumps(summary, indent=2) + '\n')
    print(json.dumps(summary, indent=2))
    print(f'summary:  {out / "summary.json"}\npictures: {pictures}')


if __name__ == '__main__':
    main()
