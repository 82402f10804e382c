"""Findings of the knowledge base made, judged and replayed with measurements."""
