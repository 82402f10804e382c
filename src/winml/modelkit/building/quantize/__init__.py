"""Quantization: float16, dynamic, static with calibration, and weights alone."""
