"""Converts a checkpoint of the authors, timm or OpenMMLab to this package's keys."""

from mmvit_ext.engine.cli import convert_parser, run_tool
from mmvit_ext.engine.convert_file import convert_file

if __name__ == '__main__':
    run_tool(convert_file, convert_parser())
