"""Prints the table of docs/circulant.md: both forms of the circulant product, timed by width."""

import argparse

from mmvit_ext.analysis.circulant_timing import table, time_forms

if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--dims', type=int, nargs='+', default=[96, 192, 384, 768, 1024])
    parser.add_argument('--tokens', type=int, default=8 * 197, help='tokens of the input')
    parser.add_argument('--paths', type=int, default=2, help='paths of the shortcut')
    parser.add_argument('--blocks', type=int, default=4, help='circulant blocks a side')
    parser.add_argument('--seconds', type=float, default=2.0, help='least time for each median')
    args = parser.parse_args()
    sizes = (args.tokens, args.paths, args.blocks, args.seconds)
    print(table(time_forms(dim, *sizes) for dim in args.dims))
