"""Model support: what a contribution is, how its evidence is made, and what speaks against it."""
