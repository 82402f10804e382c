"""Models that generate text, judged: how well they predict it, what they answer, how far two of them agree."""
