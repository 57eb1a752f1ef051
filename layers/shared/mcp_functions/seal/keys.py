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


class Header(NamedTuple):
    """The part of a token that identifies its data key, and that is not encrypted."""

    born: int  # when the data key was generated, in unix seconds
    kek_hint: bytes  # four bytes that identify the wrapping key ("key encryption key"); see the function `kek_hint`
    wrapped: bytes  # the data key as the wrapping key encrypted it


class DataKey(NamedTuple):
    """A data key that KMS generated or unwrapped."""

    header: Header  # the header of the tokens under this key
    plaintext: bytes  # 32 secret bytes

    def __repr__(self) -> str:
        """Show the key without its plaintext."""
        born, hint, wrapped = self.header
        return f"DataKey(born={born}, kek={hint.hex()}, wrapped={key_name(wrapped)})"


def key_name(wrapped: bytes) -> str:
    """Return a short name of a wrapped key, for logs."""
    return hashlib.sha256(wrapped).hexdigest()[:16]


def kek_hint(key_id: str) -> bytes:
    """Return the four bytes of a header that identify a wrapping key (envelope.md §3).

    `key_id` is the key's id without the ARN.
    """
    return hashlib.sha256(KEK_HINT_LABEL + key_id.encode()).digest()[:4]
