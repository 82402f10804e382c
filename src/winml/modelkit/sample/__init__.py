"""The sample that ships with the package: a digits classifier with its calibration and test images."""

from pathlib import Path

MODEL = Path(__file__).with_name("digits.onnx")
CALIBRATION = Path(__file__).with_name("calibration.npz")
TEST = Path(__file__).with_name("test.npz")
