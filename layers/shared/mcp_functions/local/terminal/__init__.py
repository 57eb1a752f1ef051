"""What `serve` writes to the terminal: a line for each round, the output of functions with their names, tracebacks."""
