"""Checks that the data of a config are where they should be, whole, and labelled in range."""

from mmvit_ext.engine.check_data import check
from mmvit_ext.engine.cli import check_data_parser, run_tool

if __name__ == '__main__':
    run_tool(check, check_data_parser())
