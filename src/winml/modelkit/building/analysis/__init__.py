"""What an execution provider can run, by asking it where it is installed."""
