"""Immutable values, errors and statistics; imports nothing but the standard library."""
