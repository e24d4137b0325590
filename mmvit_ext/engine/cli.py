"""Command lines of the tools: arguments that several share, and how errors are shown."""

import argparse
import os
import sys
from collections.abc import Callable

from mmengine.config import DictAction

from mmvit_ext.errors import UsageError


def run_parser(description: str) -> argparse.ArgumentParser:
    """The arguments that training and testing share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument('config', help='config of mmpretrain, mmdet or mmseg')
    parser.add_argument('--work-dir', help='folder for logs and checkpoints')
    parser.add_argument(
        '--data-root',
        metavar='DIR',
        help='folder of the data set: re-points every dataset and evaluator of the config',
    )
    parser.add_argument('--seed', type=int, help='seed of weights, data order and augmentation')
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=DictAction,
        metavar='KEY=VALUE',
        help='settings to change, such as train_dataloader.batch_size=1 or key="[a,b]"',
    )
    parser.add_argument(
        '--launcher',
        choices=['none', 'pytorch', 'slurm', 'mpi'],
        default='none',
        help='job launcher',
    )
    # torch's launchers have spelled it both ways
    parser.add_argument(
        '--local_rank', '--local-rank', type=int, default=0, help='set by launchers'
    )
    return parser


def train_parser() -> argparse.ArgumentParser:
    """The arguments of ``tools/train.py``."""
    parser = run_parser('Trains a classifier, detector or segmentor.')
    parser.add_argument(
        '--resume',
        nargs='?',
        const='auto',
        metavar='CHECKPOINT',
        help='continue from this checkpoint, or from the latest one in the work dir',
    )
    parser.add_argument(
        '--amp',
        nargs='?',
        const='fp16',
        choices=['fp16', 'bf16'],
        help='mixed precision (needs a GPU): fp16, the default, scales losses; bf16 need not',
    )
    parser.add_argument(
        '--auto-scale-lr',
        action='store_true',
        help="scale the learning rate from the config's base batch size to the actual one",
    )
    return parser


def test_parser() -> argparse.ArgumentParser:
    """The arguments of ``tools/test.py``."""
    parser = run_parser('Evaluates a checkpoint on the test set of a config.')
    parser.add_argument('checkpoint', help='checkpoint file')
    return parser


def predict_parser() -> argparse.ArgumentParser:
    """The arguments of ``tools/predict.py``."""
    parser = argparse.ArgumentParser(
        description='Draws what a model predicts for pictures, with a JSON file beside each.'
    )
    parser.add_argument('config', help='config of mmpretrain, mmdet or mmseg')
    parser.add_argument('checkpoint', help='checkpoint file')
    parser.add_argument('source', help='a picture, or a folder of pictures')
    parser.add_argument('--out', default='predictions', help='folder to write to')
    parser.add_argument('--score', type=float, default=0.3, help='least score of a detection shown')
    parser.add_argument('--limit', type=int, help='most pictures to predict')
    parser.add_argument(
        '--device', default='auto', help='cpu, cuda:0, ...; auto takes a GPU if any'
    )
    return parser


def convert_parser() -> argparse.ArgumentParser:
    """The arguments of ``tools/model_converters/convert.py``."""
    parser = argparse.ArgumentParser(
        description='Converts a checkpoint of the authors, timm or OpenMMLab to our keys.'
    )
    parser.add_argument('source', metavar='IN', help='checkpoint file or URL')
    parser.add_argument('out', metavar='OUT', help='file to write')
    parser.add_argument(
        '--to',
        choices=['backbone', 'classifier'],
        default='backbone',
        help="bare weights for a backbone's init_cfg, or backbone and head for mmpretrain",
    )
    return parser


def flops_parser() -> argparse.ArgumentParser:
    """The arguments of ``tools/analysis_tools/get_flops.py``."""
    parser = argparse.ArgumentParser(
        description="Prints a model's parameters and multiply-adds, or writes a table of models."
    )
    parser.add_argument('config', nargs='?', help='config of mmpretrain, mmdet or mmseg')
    parser.add_argument(
        '--size',
        nargs=2,
        type=int,
        default=(224, 224),
        metavar=('H', 'W'),
        help='height and width of the image, in pixels',
    )
    parser.add_argument(
        '--table', metavar='JSON', help='list of models; the .md file beside it is rewritten'
    )
    return parser


def ablations_parser() -> argparse.ArgumentParser:
    """The arguments of ``tools/misc/write_ablations.py``."""
    parser = argparse.ArgumentParser(
        description="Writes the configs of the papers' ablations beside their table."
    )
    parser.add_argument('table', help='table of ablations, JSON')
    parser.add_argument(
        '--check', action='store_true', help='write nothing, fail where a config differs'
    )
    return parser


def robustness_parser() -> argparse.ArgumentParser:
    """The arguments of ``tools/analysis_tools/robustness.py``."""
    parser = argparse.ArgumentParser(
        description='Tables the top-1 accuracy of a classifier on translated and shrunken images.'
    )
    parser.add_argument('config', help='config of mmpretrain')
    parser.add_argument('checkpoint', help='checkpoint file')
    parser.add_argument(
        '--shares',
        nargs='+',
        type=float,
        default=[0.15, 0.3, 0.45, 0.6],
        metavar='SHARE',
        help='shares of the side to move and to shrink by, between 0 and 1',
    )
    parser.add_argument('--data-root', metavar='DIR', help='folder of the data set, of both models')
    parser.add_argument(
        '--out', default='work_dirs/robustness', metavar='DIR', help='folder to write to'
    )
    parser.add_argument(
        '--limit', type=int, metavar='N', help='most images to classify, spread over the test set'
    )
    parser.add_argument(
        '--second',
        nargs=2,
        metavar=('CONFIG', 'CHECKPOINT'),
        help='another model, whose losses are compared with those of the first',
    )
    return parser


def benchmark_parser() -> argparse.ArgumentParser:
    """The arguments of ``tools/analysis_tools/benchmark.py``."""
    parser = argparse.ArgumentParser(
        description='Measures time and memory of vision backbones, in ratios from one run.'
    )
    parser.add_argument(
        '--models',
        nargs='+',
        action='append',
        default=[],
        metavar='SOURCE:NAME[:key=value,...]',
        help='a group of models, compared with its first; may be given several times. Sources: '
        'mmvit_ext, mmdet, mmseg, mmpretrain, timm, torchvision, and reference, the networks as '
        'their authors compute them',
    )
    parser.add_argument(
        '--shapes',
        nargs='+',
        metavar='Nx3xHxW',
        help='sizes of the batch, images and pixels; without --sizes 4x3x224x224',
    )
    parser.add_argument(
        '--sizes',
        nargs='+',
        type=int,
        default=[],
        metavar='PIXELS',
        help='sides of square images, one at a time; three or more are drawn as curves',
    )
    parser.add_argument(
        '--mode',
        nargs='+',
        choices=['forward', 'train'],
        default=['forward'],
        help='forward pass without gradients; forward and backward pass in training mode',
    )
    parser.add_argument(
        '--dtype',
        nargs='+',
        choices=['float32', 'bfloat16', 'float16'],
        default=['float32'],
        help='kinds of numbers; the half ones by autocast',
    )
    parser.add_argument('--device', default='cpu', help='cpu or cuda')
    parser.add_argument('--compile', action='store_true', help='let torch.compile have the models')
    parser.add_argument('--threads', type=int, default=1, metavar='N', help='threads of the CPU')
    parser.add_argument(
        '--rounds', type=int, default=10, metavar='N', help='how often each model is timed'
    )
    parser.add_argument(
        '--out',
        default='work_dirs/benchmark',
        metavar='DIR',
        help='folder to write page, JSON and pictures to',
    )
    parser.add_argument(
        '--page', metavar='FILE', help='the page, to be written elsewhere, with JSON beside it'
    )
    parser.add_argument(
        '--add',
        nargs='+',
        default=[],
        metavar='JSON',
        help='earlier runs, to go first on the page; without --models nothing is measured',
    )
    return parser


def data_parser(description: str) -> argparse.ArgumentParser:
    """The arguments that the tools for data share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument('config', help='config of mmpretrain, mmdet or mmseg')
    parser.add_argument(
        '--data-root',
        metavar='DIR',
        help='folder of the data set: re-points every dataset and evaluator of the config',
    )
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=DictAction,
        metavar='KEY=VALUE',
        help='settings to change, such as key="[a,b]"',
    )
    return parser


def check_data_parser() -> argparse.ArgumentParser:
    """The arguments of ``tools/dataset_converters/check_data.py``."""
    parser = data_parser('Checks that the data of a config are complete, and counts them.')
    parser.add_argument(
        '--decode', action='store_true', help='decode every image, not only read its header'
    )
    return parser


def browse_parser() -> argparse.ArgumentParser:
    """The arguments of ``tools/analysis_tools/browse_dataset.py``."""
    parser = data_parser('Draws samples of a data set, as a model gets them, into one picture.')
    parser.add_argument('--out', default='samples.jpg', metavar='FILE', help='picture to write')
    parser.add_argument(
        '--split', choices=['train', 'val', 'test'], default='train', help='which of the data sets'
    )
    parser.add_argument('--number', type=int, default=16, metavar='N', help='most samples to draw')
    parser.add_argument('--seed', type=int, default=0, help='seed of choice and augmentation')
    return parser


def zoo_parser() -> argparse.ArgumentParser:
    """The arguments of ``tools/misc/check_zoo.py``."""
    parser = argparse.ArgumentParser(
        description='Checks the metafiles of the model zoo and the pages made from them.'
    )
    parser.add_argument('--root', default='.', help='folder of model-index.yml')
    parser.add_argument('--write', action='store_true', help='write the pages anew')
    return parser


def run_tool(main: Callable[[argparse.Namespace], None], parser: argparse.ArgumentParser) -> None:
    """Parses the command line and runs a tool; a :class:`UsageError` is shown as one line."""
    args = parser.parse_args()
    if hasattr(args, 'local_rank'):
        os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    try:
        main(args)
    except UsageError as error:
        # a data worker's error arrives with its traceback before the message
        message = str(error).rstrip().rsplit('UsageError: ', 1)[-1]
        print(f'error: {message}', file=sys.stderr)
        sys.exit(2)
