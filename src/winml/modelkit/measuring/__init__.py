"""Measures latency: protocols, sessions in fresh processes, what makes a number untrustworthy."""
