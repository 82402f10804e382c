"""Where a quantized model loses accuracy: layers ranked on the target itself."""
