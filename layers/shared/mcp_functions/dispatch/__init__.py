"""A request goes to its handler; the state of a conversation is opened before the handler, and sealed after it."""
