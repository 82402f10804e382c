"""Rewrites that no library has, one module each: `rewrite(model)` changes the graph and says whether it did."""
