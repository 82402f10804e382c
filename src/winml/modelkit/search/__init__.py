"""Searches configs: what to try next, when to stop and which one wins, from functions that build and measure."""
