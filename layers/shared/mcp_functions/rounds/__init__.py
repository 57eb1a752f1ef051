"""One round: the function runs from its first line, with recorded answers and steps; new questions end the round."""
