"""One round by replay: what it asks, its steps, its progress."""
