"""One module per command: options, one call, one text."""
