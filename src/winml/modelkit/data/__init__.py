"""Calibration and evaluation data: files and folders that become inputs of a model."""
