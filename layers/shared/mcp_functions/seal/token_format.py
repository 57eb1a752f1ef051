"""The text of a token: `ks1.`, and base64url of a readable head and an encrypted message (envelope.md §2).

    head = suite (1 byte) || key kind (1) || born (4) || kek (4) || size (2) || wrapped data key

The head says which data key opens the message: when it was born, which wrapping key of KMS wraps it (`kek`, the "key
encryption key"), and the wrapped key itself. This module authenticates no part of it, because that needs the data key.
"""

from __future__ import annotations

import binascii
import struct
from typing import TYPE_CHECKING

from mcp_functions.protocol.errors import InvalidRequestState
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.seal.chunked_encryption import MIN_MESSAGE_BYTES, message_bytes, split
from mcp_functions.seal.data_keys import MAX_WRAPPED, Header, TokenReason
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from mcp_functions.seal.data_keys import DataKey

PREFIX = "ks1."
SUITE = 0x01
KEY_IN_TOKEN = 0x01  # the key kind: the token holds the wrapped data key; 0x02 is reserved and refused
CEILING = 4 * 1024 * 1024  # characters
ID_BYTES = 16  # the bytes of the commitment that are the token's id

_FIXED = struct.Struct(">BBI4sH")  # the head before the wrapped data key
_TO_BASE64 = bytes.maketrans(b"-_+/=", b"+/\0\0\0")  # invalid characters become NUL, which the decoder refuses


class Token(NamedTuple):
    """The parts of a token."""

    head: bytes
    key: Header  # the fields of the head
    message: bytes

    @property
    def id(self) -> bytes:
        """The start of the commitment, which names the token in logs."""
        _salt, commitment, _chunks = split(self.message)
        return commitment[:ID_BYTES]


def write_head(key: DataKey) -> bytes:
    """Return the head of a token that a data key seals."""
    return _FIXED.pack(SUITE, KEY_IN_TOKEN, key.born, key.kek, len(key.wrapped)) + key.wrapped


def write(head: bytes, message: bytes) -> str:
    """Return the text of a token."""
    return PREFIX + base64url(head + message)


def count_chars(head: bytes, payload: bytes) -> int:
    """Return how many characters the token of a payload will have."""
    body_bytes = len(head) + message_bytes(len(payload))
    return len(PREFIX) + (body_bytes * 4 + 2) // 3


def parse(text: str, max_chars: int) -> Token:
    """Split a token, in the order of §7: a refusal here costs neither KMS nor a key derivation.

    Raises:
        InvalidRequestState: the text is not a token, or has more than `max_chars` characters.
    """
    if not isinstance(text, str) or not text.startswith(PREFIX):
        raise InvalidRequestState(TokenReason.PREFIX)
    if len(text) > max_chars:
        raise InvalidRequestState(TokenReason.LENGTH)
    body = _decode(text[len(PREFIX) :])
    if len(body) < _FIXED.size:
        raise InvalidRequestState(TokenReason.TRUNCATED)
    suite, key_kind, born, kek, wrapped_bytes = _FIXED.unpack_from(body)
    if suite != SUITE:
        raise InvalidRequestState(TokenReason.SUITE)
    if key_kind != KEY_IN_TOKEN:
        raise InvalidRequestState(TokenReason.KEY_KIND)
    head_bytes = _FIXED.size + wrapped_bytes
    if not 1 <= wrapped_bytes <= MAX_WRAPPED or len(body) < head_bytes + MIN_MESSAGE_BYTES:
        raise InvalidRequestState(TokenReason.TRUNCATED)
    head = body[:head_bytes]
    message = body[head_bytes:]
    return Token(head, Header(born, kek, wrapped=head[_FIXED.size :]), message)


def _decode(text: str) -> bytes:
    """Decode base64url. "Only the canonical encoding is accepted": a token has one spelling."""
    try:
        encoded = text.encode("ascii").translate(_TO_BASE64) + b"=" * (-len(text) % 4)
        body = binascii.a2b_base64(encoded, strict_mode=True)
    except (ValueError, binascii.Error):
        raise InvalidRequestState(TokenReason.ENCODING) from None
    # The last character may hold more bits than the last byte needs. The decoder ignores them, so several characters
    # give the same byte. Only the character that the encoder writes is accepted.
    last = len(body) % 3
    if last and not encoded.endswith(binascii.b2a_base64(body[-last:], newline=False)):
        raise InvalidRequestState(TokenReason.ENCODING)
    return body
