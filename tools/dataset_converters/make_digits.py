"""Make a small demo data set of handwritten digits in the COCO, ADE20K or ImageNet layout.

Example::

    python tools/dataset_converters/make_digits.py data/coco --layout coco --train 400 --val 100
"""

import argparse
import sys
import time
from typing import NoReturn

from mmvit_ext.datasets import DigitSettings, make_digits


class _Parser(argparse.ArgumentParser):
    """A parser that reports a bad value in one line instead of the whole usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f'{self.prog}: error: {message}\n')


def _parse(argv: list[str] | None) -> tuple[_Parser, argparse.Namespace]:
    """Read the command line."""
    parser = _Parser(description=__doc__.splitlines()[0])
    parser.add_argument('out', help='folder of the data set')
    parser.add_argument('--layout', required=True, help='coco, ade or imagenet')
    parser.add_argument('--train', type=int, default=400, help='training pictures (%(default)s)')
    parser.add_argument('--val', type=int, default=100, help='validation pictures (%(default)s)')
    parser.add_argument(
        '--size', type=int, nargs='+', default=[160], metavar='PX', help='side, or height and width'
    )
    parser.add_argument('--seed', type=int, default=0, help='seed of all draws (%(default)s)')
    parser.add_argument(
        '--coco-names', action='store_true', help='name the digits after the 80 COCO categories'
    )
    parser.add_argument(
        '--force', action='store_true', help='write into a folder that holds something else'
    )
    args = parser.parse_args(argv)
    if len(args.size) > 2:
        parser.error(f'size={args.size}: give one side, or height and width')
    return parser, args


def main(argv: list[str] | None = None) -> int:
    """Run the tool.

    Args:
        argv: Arguments without the program name; None takes those of the process.

    Returns:
        0 when the data set is in place, 1 when it could not be written.
    """
    parser, args = _parse(argv)
    start = time.perf_counter()
    try:
        settings = DigitSettings(
            layout=args.layout,
            train=args.train,
            val=args.val,
            height=args.size[0],
            width=args.size[-1],
            seed=args.seed,
            coco_names=args.coco_names,
        )
        written = make_digits(args.out, settings, force=args.force)
    except (ValueError, FileExistsError) as error:
        parser.error(str(error))
    except (ImportError, OSError) as error:
        print(f'{parser.prog}: error: {error}', file=sys.stderr)
        return 1
    what = (
        f'{args.train} training and {args.val} validation pictures of '
        f'{settings.height}x{settings.width} pixels in the {args.layout} layout'
    )
    if not written:
        print(f'{args.out} already holds {what}, made with the same settings: nothing to do')
        return 0
    print(f'wrote {what} to {args.out} in {time.perf_counter() - start:.1f} s')
    return 0


if __name__ == '__main__':
    sys.exit(main())
