"""The papers' ablations in miniature: small networks, real pictures, several seeds.

Gate of residual attention (arXiv 2402.11301), pixels of the shift (2201.10801), number of augmented
paths (2106.15941). Nano networks are trained from nothing on two data sets of ten classes.
"""

import json
import statistics
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config
from mmengine.runner import Runner

from .data_root import repoint


@dataclass(frozen=True)
class Study:
    """One setting of a backbone and the values compared.

    Attributes:
        title: What is studied.
        config: Stem of the config below ``configs/demo``.
        setting: Argument of the backbone.
        values: Its values.
        fixed: Further arguments, the same for all values.
    """

    title: str
    config: str
    setting: str
    values: tuple[float, ...]
    fixed: dict[str, Any] = field(default_factory=dict)


STUDIES = (
    Study(
        'residual attention (ReViT)',
        'revit-nano_digits-cls',
        'alpha',
        (0.0, 0.5, 1.0),
        {'alpha_mode': 'fixed'},
    ),
    Study('shift (ShiftViT)', 'shiftvit-nano_digits-cls', 'shift_pixels', (0, 1, 2)),
    Study('augmented paths (Aug-ViT)', 'augvit-nano_digits-cls', 'num_paths', (0, 1, 2)),
)


@dataclass(frozen=True)
class Run:
    """One training run: a study's value, a data set by name, a seed and a length in epochs."""

    study: str
    value: float
    data: str
    seed: int
    epochs: int


def train_one(run: Run, config: str, data_root: str, work_dir: str) -> float:
    """Trains and evaluates one network on one thread.

    Args:
        run: What to train.
        config: Path of the study's config.
        data_root: Folder of the data set in ImageNet's layout.
        work_dir: Where mmengine's log goes.

    Returns:
        Top-1 accuracy on the validation pictures after the last epoch, in percent.
    """
    torch.set_num_threads(1)
    study = next(s for s in STUDIES if s.title == run.study)
    cfg = Config.fromfile(config)
    repoint(cfg, data_root)
    cfg.model.backbone.update({**study.fixed, study.setting: run.value})
    cfg.train_cfg.update(max_epochs=run.epochs, val_interval=run.epochs + 1)
    cfg.param_scheduler[1].T_max = run.epochs
    cfg.update(work_dir=work_dir, randomness={'seed': run.seed}, log_level='WARNING')
    cfg.default_hooks.checkpoint = None
    # tiny pictures load faster than workers start
    for loader in (cfg.train_dataloader, cfg.val_dataloader):
        loader.update(num_workers=0, persistent_workers=False)
    # a visualizer of a fixed name would be shared by the runs of a process
    cfg.pop('visualizer')
    runner = Runner.from_cfg(cfg)
    runner.train()
    return runner.val()['accuracy/top1']


def run_studies(
    configs: Path, data: dict[str, Path], seeds: Iterable[int], epochs: int, jobs: int, out: Path
) -> list[dict[str, Any]]:
    """Trains all networks of all studies; what a results file already holds is not done again.

    Args:
        configs: Folder of the studies' configs.
        data: Data sets in ImageNet's layout: folder by name.
        seeds: Seeds of weights and data order.
        epochs: Length of each run.
        jobs: Runs at a time, each on one thread.
        out: Folder of ``results.json`` and the logs.

    Returns:
        A dict a run: the fields of :class:`Run`, ``top1`` in percent and ``seconds``.
    """
    file = out / 'results.json'
    results = json.loads(file.read_text()) if file.is_file() else []
    seeds = tuple(seeds)
    runs = [
        (Run(study.title, value, name, seed, epochs), study.config)
        for seed in seeds
        for name in data
        for study in STUDIES
        for value in study.values
    ]
    done = [{k: v for k, v in result.items() if k not in ('top1', 'seconds')} for result in results]
    todo = [(run, config) for run, config in runs if asdict(run) not in done]
    with ProcessPoolExecutor(jobs, mp_context=get_context('spawn')) as pool:
        futures = {
            pool.submit(
                _timed,
                run,
                str(configs / f'{config}.py'),
                str(data[run.data]),
                str(out / 'runs' / f'{config}_{run.value}_{run.data}_{run.seed}'),
            ): run
            for run, config in todo
        }
        for future in as_completed(futures):
            top1, seconds = future.result()
            results.append({**asdict(futures[future]), 'top1': top1, 'seconds': seconds})
            _replace(file, json.dumps(results, indent=1) + '\n')
            print(f'{len(results)}/{len(runs)} {futures[future]}: {top1:.1f} %', flush=True)
    return results


def _timed(*args: Any) -> tuple[float, float]:
    start = time.monotonic()
    top1 = train_one(*args)
    return top1, round(time.monotonic() - start, 1)


def _replace(file: Path, text: str) -> None:
    """Writes a file in one step, so that what it held is never lost."""
    part = file.with_suffix('.part')
    part.write_text(text)
    part.replace(file)


def ablation_table(results: list[dict[str, Any]]) -> str:
    """The results as a Markdown table: mean top-1 over seeds and its spread.

    Args:
        results: What :func:`run_studies` gives.

    Returns:
        The table; ``a ± b`` is mean and standard deviation (of a sample) in percent.
    """
    names = list(dict.fromkeys(result['data'] for result in results))
    lines = [f'| study | value | {" | ".join(names)} |', '|---|---|' + '---|' * len(names)]
    for study in STUDIES:
        for value in study.values:
            cells = []
            for name in names:
                top1 = [
                    r['top1']
                    for r in results
                    if (r['study'], r['value'], r['data']) == (study.title, value, name)
                ]
                spread = statistics.stdev(top1) if len(top1) > 1 else 0.0
                cells.append(f'{statistics.mean(top1):.2f} ± {spread:.2f}' if top1 else '-')
            lines.append(f'| {study.title} | {study.setting} = {value} | {" | ".join(cells)} |')
    return '\n'.join(lines) + '\n'
