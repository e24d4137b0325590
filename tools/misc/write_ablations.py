"""Writes the configs of the papers' ablations from their table."""

from mmvit_ext.engine.ablation_configs import write_ablations
from mmvit_ext.engine.cli import ablations_parser, run_tool

if __name__ == '__main__':
    run_tool(write_ablations, ablations_parser())
