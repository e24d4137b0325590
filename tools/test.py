"""Evaluates a checkpoint on the test set of a config."""

from mmvit_ext.engine.cli import run_tool, test_parser
from mmvit_ext.engine.run import test

if __name__ == '__main__':
    run_tool(test, test_parser())
