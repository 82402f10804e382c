"""Models into EP contexts: one file each, or several that share one binary."""
