"""One use case per command: wires the parts together; no click, no printing."""
