"""The envelope, the state that it seals, and the keys that seal it."""
