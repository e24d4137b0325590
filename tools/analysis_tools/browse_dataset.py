"""Draws samples of a config's data set, augmented and with their labels, into one picture."""

from mmvit_ext.engine.browse import browse
from mmvit_ext.engine.cli import browse_parser, run_tool

if __name__ == '__main__':
    run_tool(browse, browse_parser())
