"""Rewrites that no library has, one module each: `rewrite(model)` changes the graph and returns whether it did."""
