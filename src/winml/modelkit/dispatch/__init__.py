"""Jobs: programs that run to their end, here or elsewhere."""
