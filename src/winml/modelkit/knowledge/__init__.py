"""What is known about execution providers without asking one."""
