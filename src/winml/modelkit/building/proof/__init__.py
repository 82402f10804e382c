"""Whether an artifact computes on its target what its source computes."""
