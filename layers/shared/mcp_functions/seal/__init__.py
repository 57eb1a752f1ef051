"""Seals the state that a client carries between two rounds: the envelope, the state's claims, and the keys of KMS."""
