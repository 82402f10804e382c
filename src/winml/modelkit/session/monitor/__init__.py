"""Monitors: what an EP tells about the operators it ran, in one form."""
