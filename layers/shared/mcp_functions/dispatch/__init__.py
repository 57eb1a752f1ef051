"""A method goes to its handler; a conversation is opened and sealed here."""
