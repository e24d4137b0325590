"""Prints a model's parameters and multiply-adds, or writes the table of all models."""

from mmvit_ext.engine.cli import flops_parser, run_tool
from mmvit_ext.engine.complexity_table import get_flops

if __name__ == '__main__':
    run_tool(get_flops, flops_parser())
