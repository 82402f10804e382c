"""Model support: what a model needs (probe), a contribution with its evidence (produce), and its review."""
