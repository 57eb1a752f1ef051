"""`demo`: an official client holds a conversation, and the terminal shows what travels."""
