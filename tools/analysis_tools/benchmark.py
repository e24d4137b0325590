"""Measures time and memory of vision backbones, the package's and others', side by side."""

from mmvit_ext.engine.benchmark import benchmark
from mmvit_ext.engine.cli import benchmark_parser, run_tool

if __name__ == '__main__':
    run_tool(benchmark, benchmark_parser())
