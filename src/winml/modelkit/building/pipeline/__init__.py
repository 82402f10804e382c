"""Runs the stages of a build, with the cache between them."""
