"""The papers' ablations in miniature, on handwritten digits and, where apt has it, Fashion-MNIST.

Writes everything below ``work_dirs/ablation``; interrupted, the same command goes on.
"""

import argparse
import os
import time
from pathlib import Path

from mmvit_ext.datasets import DigitSettings, make_digits
from mmvit_ext.datasets.fashion_mnist import find_fashion_mnist, write_fashion_mnist
from mmvit_ext.engine.ablation import ablation_table, run_studies

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Makes the data, trains, and prints the table."""
    parser = argparse.ArgumentParser(description='Trains the miniature ablations.')
    parser.add_argument('--out', type=Path, default=ROOT / 'work_dirs' / 'ablation')
    parser.add_argument('--seeds', type=int, nargs='+', default=[0, 1, 2])
    parser.add_argument('--epochs', type=int, default=12, help='length of a run (%(default)s)')
    parser.add_argument('--train', type=int, default=2000, help='training pictures (%(default)s)')
    parser.add_argument('--val', type=int, default=1000, help='validation pictures (%(default)s)')
    parser.add_argument(
        '--jobs', type=int, default=os.cpu_count(), help='runs at a time (%(default)s)'
    )
    args = parser.parse_args()
    start, out = time.monotonic(), args.out.resolve()
    data = {'digits': out / 'data' / 'digits'}
    settings = DigitSettings('imagenet', args.train, args.val, height=32, width=32)
    make_digits(data['digits'], settings)
    fashion = find_fashion_mnist(out / 'apt')
    if fashion:
        data['fashion-mnist'] = out / 'data' / 'fashion-mnist'
        write_fashion_mnist(fashion, data['fashion-mnist'], args.train, args.val)
    results = run_studies(ROOT / 'configs' / 'demo', data, args.seeds, args.epochs, args.jobs, out)
    table = ablation_table(results)
    (out / 'table.md').write_text(table)
    print(f'\n{table}\n{out / "table.md"}, {time.monotonic() - start:.0f} s')


if __name__ == '__main__':
    main()
