"""One module per command: options, one call to `app`, one call to `render`."""
