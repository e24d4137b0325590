"""Tables a classifier's accuracy on translated and shrunken test images."""

from mmvit_ext.engine.cli import robustness_parser, run_tool
from mmvit_ext.engine.robustness import robustness

if __name__ == '__main__':
    run_tool(robustness, robustness_parser())
