"""Text from decoders: one token after another, in our loop over ONNX Runtime or by onnxruntime-genai."""
