"""Jobs: programs that run to completion, on this machine or on others."""
