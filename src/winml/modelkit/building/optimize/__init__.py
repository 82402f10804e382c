"""Passes over a graph: ONNX Runtime's transformers one by one, library passes, opset conversion, own rewrites."""
