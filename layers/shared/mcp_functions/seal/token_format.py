"""The text of a token: `ks1.`, then base64url of an unencrypted head and an encrypted message (envelope.md §2).

    part       bytes    field         meaning
    head       1        suite         the algorithms; there is one suite
               1        key kind      where the data key is: in the token
               4        born          when the data key was generated, in unix seconds
               4        kek_hint      which wrapping key of KMS ("key encryption key") wraps the data key
               2        size          the size of the wrapped data key in bytes
               size     wrapped       the wrapped data key
    message    the rest               see `chunked_encryption`

The head says which data key opens the message. `Header` has the three fields of the head that do this: born, kek and
wrapped. This module authenticates nothing, because that needs the data key.
"""

from __future__ import annotations

import binascii
import struct

from mcp_functions.protocol.errors import InvalidRequestState
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.seal.chunked_encryption import MIN_MESSAGE_BYTES, message_size, split
from mcp_functions.seal.keys import MAX_WRAPPED, Header, TokenReason
from mcp_functions.tuples import NamedTuple

PREFIX = "ks1."
SUITE = 0x01
KEY_IN_TOKEN = 0x01  # the key kind: the token holds the wrapped data key; 0x02 is reserved and refused
# The most characters that a deployment may allow for its tokens. `Envelope` refuses a higher limit, and gives `parse`
# the limit that the deployment set.
CEILING = 4 * 1024 * 1024
ID_BYTES = 16  # a token's id is the first bytes of its message's commitment, which differs for every message

_FIXED = struct.Struct(">BBI4sH")  # the fields of the head before the wrapped data key, which all have a fixed size
# From base64url to the alphabet of Python's decoder: `-` and `_` become `+` and `/`. The characters `+`, `/` and `=` do
# not belong to base64url. They become NUL, which the decoder refuses.
_TO_BASE64 = bytes.maketrans(b"-_+/=", b"+/\0\0\0")


class Token(NamedTuple):
    """The parts of a token."""

    head: bytes  # all bytes before the message; they are authenticated together with it
    header: Header  # the fields of the head that identify the data key
    message: bytes

    @property
    def id(self) -> bytes:
        """The start of the commitment, which names the token in logs."""
        _salt, commitment, _chunks = split(self.message)
        return commitment[:ID_BYTES]


def write_head(header: Header) -> bytes:
    """Return the head of every token under a data key."""
    born, kek_hint, wrapped = header
    return _FIXED.pack(SUITE, KEY_IN_TOKEN, born, kek_hint, len(wrapped)) + wrapped


def write(head: bytes, message: bytes) -> str:
    """Return the text of a token."""
    return PREFIX + base64url(head + message)


def count_chars(head: bytes, payload: bytes) -> int:
    """Return how many characters the token of a payload will have."""
    size = len(head) + message_size(len(payload))
    return len(PREFIX) + (size * 4 + 2) // 3  # base64 without padding: 4 characters for 3 bytes, rounded up


def parse(text: str, max_chars: int) -> Token:
    """Split a token, with the checks 1 to 7 of envelope.md §7, in that order. They need no KMS and no key derivation.

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
    suite, key_kind, born, kek_hint, wrapped_size = _FIXED.unpack_from(body)
    if suite != SUITE:
        raise InvalidRequestState(TokenReason.SUITE)
    if key_kind != KEY_IN_TOKEN:
        raise InvalidRequestState(TokenReason.KEY_KIND)
    # §7 has one reason for a size that no wrapped key has and for a body that ends too early.
    if not 1 <= wrapped_size <= MAX_WRAPPED:
        raise InvalidRequestState(TokenReason.TRUNCATED)
    head_size = _FIXED.size + wrapped_size
    if len(body) < head_size + MIN_MESSAGE_BYTES:
        raise InvalidRequestState(TokenReason.TRUNCATED)
    head = body[:head_size]
    header = Header(born, kek_hint, wrapped=head[_FIXED.size :])
    return Token(head, header, message=body[head_size:])


def _decode(text: str) -> bytes:
    """Decode base64url without padding. "Only the canonical encoding is accepted": a token has one spelling."""
    padding = b"=" * (-len(text) % 4)  # the decoder needs a multiple of 4 characters
    try:
        encoded = text.encode("ascii").translate(_TO_BASE64) + padding
        body = binascii.a2b_base64(encoded, strict_mode=True)
    except (ValueError, binascii.Error):
        raise InvalidRequestState(TokenReason.ENCODING) from None  # the cause holds the client's text
    if not _is_canonical(encoded, body):
        raise InvalidRequestState(TokenReason.ENCODING)
    return body


def _is_canonical(encoded: bytes, body: bytes) -> bool:
    """Check that base64 is the canonical text of its bytes: "QQ==" and "QR==" both decode to "A", but "QQ==" is that.

    Base64 writes 3 bytes as 4 characters. If 1 or 2 bytes are left, the decoder ignores bits of the last character. So
    these bytes are encoded again, and the text must end with the result.
    """
    left = len(body) % 3
    return left == 0 or encoded.endswith(binascii.b2a_base64(body[-left:], newline=False))
