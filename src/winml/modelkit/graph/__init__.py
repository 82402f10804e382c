"""ONNX files: loading and saving, facts about a graph, its fingerprint. The only package that imports onnx."""
