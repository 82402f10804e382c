"""Takes a model to the fastest accurate artifact for every ONNX Runtime execution provider, and proves it."""

__version__ = "0.1.0"
