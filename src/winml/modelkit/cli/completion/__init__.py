"""Shell completion: the scripts of four shells, and the answers they ask the program for."""
