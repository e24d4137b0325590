"""Checks the metafiles of the model zoo and the pages made from them, or writes these pages."""

from mmvit_ext.engine.cli import run_tool, zoo_parser
from mmvit_ext.engine.zoo import check_zoo

if __name__ == '__main__':
    run_tool(check_zoo, zoo_parser())
