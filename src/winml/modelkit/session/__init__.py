"""ONNX Runtime: the only package that opens sessions and registers execution providers."""
