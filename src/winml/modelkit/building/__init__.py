"""Builds a model for a target: config, the stages, the pipeline that runs them, and the proof of what they made."""
