"""`serve` writes to the terminal: a line for each round, and the output of functions with their names."""
