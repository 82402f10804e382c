"""Processes of our own: start, talk to, kill. Knows nothing of runtimes."""
