"""The terminal: arguments in, text and exit codes out. The only package that knows click."""
