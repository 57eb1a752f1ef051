"""`open TOKEN`: explains to the holder of the key why a server refuses a requestState."""
