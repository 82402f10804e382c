"""Model support: what a contribution is, how its evidence is made, and how it is reviewed."""
