"""Trains a classifier, detector or segmentor: any config of mmpretrain, mmdet or mmseg."""

from mmvit_ext.engine.cli import run_tool, train_parser
from mmvit_ext.engine.run import train

if __name__ == '__main__':
    run_tool(train, train_parser())
