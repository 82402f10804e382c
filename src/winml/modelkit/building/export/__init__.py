"""From a Hugging Face model to ONNX; torch and transformers are imported in the worker only."""
