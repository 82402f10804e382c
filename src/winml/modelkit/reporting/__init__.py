"""`winml report`: runs of every kind, read again and shown."""
