"""Export, optimize, quantize, compile: each turns one artifact into the next and knows nothing of the others."""
