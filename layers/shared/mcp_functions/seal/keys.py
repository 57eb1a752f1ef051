"""Data keys, and the part of a token that identifies one: plain data (envelope.md §2 and envelope.md §3)."""

from __future__ import annotations

import hashlib

from mcp_functions.tuples import NamedTuple

KEY_BYTES = 32  # the size of every data key
MAX_WRAPPED = 1024  # the most bytes that a wrapped data key may have
# This constant is part of the token format. With another value, no token that exists would open, so it never changes.
KEK_HINT_LABEL = b"ks1/kek\0"


class Scope(NamedTuple):
    """The functions that share keys: `service` ("<stack>/<function>" or a shared audience), `stage`, `generation`."""

    service: str
    stage: str
    generation: str


class WrappedKey(NamedTuple):
    """A data key as a token holds it. It is not encrypted further, and tells which wrapping key can unwrap it."""

    born: int  # when the data key was generated, in unix seconds
    kek_hint: bytes  # four bytes that identify the wrapping key ("key encryption key"); see the function `kek_hint`
    encrypted: bytes  # the data key as the wrapping key encrypted it


class DataKey(NamedTuple):
    """A data key that KMS generated or unwrapped."""

    wrapped_key: WrappedKey  # each token under this key holds it
    plaintext: bytes  # 32 secret bytes

    def __repr__(self) -> str:
        """Show the key without its plaintext."""
        born, hint, encrypted = self.wrapped_key
        return f"DataKey(born={born}, kek={hint.hex()}, wrapped={key_name(encrypted)})"


def with_length(part: bytes) -> bytes:
    """Put the length of a part, in 2 bytes, before it (`lp16` in envelope.md): so ("a", "bc") is not ("ab", "c")."""
    return len(part).to_bytes(2, "big") + part


def key_name(encrypted: bytes) -> str:
    """Return a short name of an encrypted data key, for logs."""
    return hashlib.sha256(encrypted).hexdigest()[:16]


def kek_hint(key_id: str) -> bytes:
    """Return the four bytes of a token that identify a wrapping key (envelope.md §3).

    `key_id` is the key's id without the ARN.
    """
    return hashlib.sha256(KEK_HINT_LABEL + key_id.encode()).digest()[:4]
