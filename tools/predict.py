"""Draws what a model predicts for pictures, with a JSON file beside each."""

from mmvit_ext.engine.cli import predict_parser, run_tool
from mmvit_ext.engine.predict import predict

if __name__ == '__main__':
    run_tool(predict, predict_parser())
