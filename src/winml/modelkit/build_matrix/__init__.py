"""The build matrix: which cells there are, what is left to do, and the loop that does it."""
