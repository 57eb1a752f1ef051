"""The text of a token: `ks1.`, then base64url of an unencrypted head and an encrypted message (envelope.md §2).

    part       bytes    field         meaning
    head       1        suite         the algorithms; there is one suite
               1        key kind      where the data key is: in the token
               4        born          when the data key was generated, in unix seconds
               4        kek_hint      which key of KMS, the "key encryption key", wraps (encrypts) the data key
               2        size          the size of the wrapped data key in bytes
               size     encrypted     the data key as the wrapping key encrypted it
    message    the rest               see `chunked_encryption`

`WrappedKey` has the three fields of the head that say which data key opens the message: born, kek_hint and encrypted.
This module reads and writes text, and authenticates nothing: that needs the data key.
"""

from __future__ import annotations

import binascii
import struct

from mcp_functions.protocol.errors import InvalidRequestState
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.seal.chunked_encryption import MIN_MESSAGE_BYTES, message_size, split
from mcp_functions.seal.keys import MAX_WRAPPED, WrappedKey
from mcp_functions.tuples import NamedTuple

PREFIX = "ks1."
SUITE = 0x01
KEY_IN_TOKEN = 0x01  # the token holds the wrapped data key; 0x02 is reserved and refused
MAX_TOKEN_CHARS = 4 * 1024 * 1024  # the most that a deployment may set (MCP_MAX_STATE_CHARS)
ID_BYTES = 16  # of its message's commitment, which differs for every message

_FIXED_FIELDS = struct.Struct(">BBI4sH")  # of the head before `encrypted`, 12 bytes


class Token(NamedTuple):
    """The parts of a token."""

    head: bytes  # all bytes before the message; they are authenticated together with it
    wrapped_key: WrappedKey  # the data key, as the head holds it
    message: bytes

    @property
    def id(self) -> bytes:
        """The start of the commitment, which names the token in logs."""
        _salt, commitment, _ciphertext = split(self.message)
        return commitment[:ID_BYTES]


def write_head(wrapped_key: WrappedKey) -> bytes:
    """Return the head of every token under a data key."""
    born, kek_hint, encrypted = wrapped_key
    return _FIXED_FIELDS.pack(SUITE, KEY_IN_TOKEN, born, kek_hint, len(encrypted)) + encrypted


def write(head: bytes, message: bytes) -> str:
    """Return the text of a token."""
    return PREFIX + base64url(head + message)


def count_chars(head: bytes, payload: bytes) -> int:
    """Return how many characters the token of a payload will have."""
    size = len(head) + message_size(len(payload))
    return len(PREFIX) + (size * 4 + 2) // 3  # 4 characters for 3 bytes, rounded up


def parse(text: str, max_chars: int) -> Token:
    """Split a token, with the checks 1 to 7 of envelope.md §7, in that order. They need no KMS and no key derivation.

    Raises:
        InvalidRequestState: the text is not a token, or has more than `max_chars` characters.
    """
    if not isinstance(text, str) or not text.startswith(PREFIX):
        raise InvalidRequestState(reason="prefix")
    if len(text) > max_chars:
        raise InvalidRequestState(reason="length")
    body = _decode(text[len(PREFIX) :])
    if len(body) < _FIXED_FIELDS.size:
        raise InvalidRequestState(reason="truncated")
    suite, key_kind, born, kek_hint, wrapped_size = _FIXED_FIELDS.unpack_from(body)
    if suite != SUITE:
        raise InvalidRequestState(reason="suite")
    if key_kind != KEY_IN_TOKEN:
        raise InvalidRequestState(reason="key_kind")
    # envelope.md §7 has one reason for a size that no wrapped key has and for a body that ends too early.
    if not 1 <= wrapped_size <= MAX_WRAPPED:
        raise InvalidRequestState(reason="truncated")
    head_size = _FIXED_FIELDS.size + wrapped_size
    if len(body) < head_size + MIN_MESSAGE_BYTES:
        raise InvalidRequestState(reason="truncated")
    head = body[:head_size]
    wrapped_key = WrappedKey(born, kek_hint, encrypted=head[_FIXED_FIELDS.size :])
    return Token(head, wrapped_key, message=body[head_size:])


def _decode(text: str) -> bytes:
    """Decode base64url without padding.

    Only the canonical form is accepted, so that a token has one spelling (envelope.md §7).
    """
    if "+" in text or "/" in text or "=" in text:  # base64 has these characters, base64url has not
        raise InvalidRequestState(reason="encoding")
    padding = "=" * (-len(text) % 4)  # the decoder needs a multiple of 4 characters
    try:
        body = binascii.a2b_base64(text.replace("-", "+").replace("_", "/") + padding, strict_mode=True)
    except ValueError:  # binascii.Error is a ValueError
        raise InvalidRequestState(reason="encoding") from None  # the cause holds the client's text
    # Base64 writes 3 bytes as 4 characters. If 1 or 2 bytes are left, the decoder ignores bits of the last character:
    # it reads "QQ" and "QR" as b"A". Encoded again, b"A" is "QQ", so "QR" is not canonical.
    left = body[len(body) // 3 * 3 :]
    if not text.endswith(base64url(left)):
        raise InvalidRequestState(reason="encoding")
    return body
