"""Execution providers: the table of all of them, and what this machine has."""
