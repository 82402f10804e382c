"""`winml report` and `winml dashboard`: runs of every kind, read again and shown."""
