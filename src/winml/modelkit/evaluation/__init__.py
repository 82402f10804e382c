"""Measures how right a model is: task metrics with intervals, and the distance of two artifacts."""
