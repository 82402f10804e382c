"""Digests, content-addressed objects, the stage cache and the journal: what must survive a crash."""
