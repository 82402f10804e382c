"""Monitors: what an EP reports about the operators it ran, in one form."""
