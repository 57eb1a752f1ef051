"""Compact JSON from the standard library's encoder, and base64url.

All writers refuse NaN, and refuse a value that contains itself as one that is nested too deep:

    dumps               text with every character as it is
    dumps_ascii         text with an escape for every character outside ASCII
    dumps_sorted        the same, with members sorted by name: equal values have equal texts
    encode_in_pieces    UTF-8, slower and in less memory
"""

from __future__ import annotations

import binascii
import json
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CHUNK = 16 * 1024  # characters of a long text that are processed at once
TOO_DEEP = "nested too deep"

# `check_circular` would track every container. Without it, a value that contains itself ends in a RecursionError.
_COMPACT: dict[str, Any] = {"separators": (",", ":"), "allow_nan": False, "check_circular": False}
_UNICODE = json.JSONEncoder(ensure_ascii=False, **_COMPACT)
_ASCII = json.JSONEncoder(**_COMPACT)
_SORTED = json.JSONEncoder(sort_keys=True, **_COMPACT)
_TO_BASE64URL = bytes.maketrans(b"+/", b"-_")


def dumps(value: object) -> str:
    """Serialize a value to JSON.

    Raises:
        TypeError: the value has no JSON form.
        ValueError: the value holds NaN or Infinity, or is nested too deep.
    """
    return _encode(_UNICODE, value)


def dumps_ascii(value: object) -> str:
    """Serialize as `dumps` does, and escape every character outside ASCII."""
    return _encode(_ASCII, value)


def dumps_sorted(value: object) -> str:
    """Serialize as `dumps_ascii` does, with the members of each object sorted by name."""
    return _encode(_SORTED, value)


def encode_in_pieces(value: object) -> bytes:
    """Serialize as `dumps` does, to UTF-8, without a text of the whole value.

    One emoji makes Python store a whole text in four bytes per character.

    Raises:
        TypeError, ValueError: as `dumps`; ValueError also for half of a surrogate pair.
    """
    buffer = BytesIO()
    try:
        for piece in _UNICODE.iterencode(value):
            buffer.write(piece.encode())
    except RecursionError:  # hidden as in `_encode`
        raise ValueError(TOO_DEEP) from None
    return buffer.getvalue()


def dumps_with_member(members: Mapping[str, object], name: str, text: str) -> str:
    """Serialize an object whose last member, called `name`, is already JSON (`text`)."""
    without_text = dumps({**members, name: None}).removesuffix("null}")
    return without_text + text + "}"


def chunks(text: str) -> Iterator[str]:
    """Cut a long text into chunks, so that no second copy of the whole text is needed."""
    return (text[start : start + CHUNK] for start in range(0, len(text), CHUNK))


def base64url(raw: bytes) -> str:
    """Encode bytes as base64url without padding (RFC 4648, section 5), which needs no escape in JSON or in a header."""
    padded = binascii.b2a_base64(raw, newline=False).translate(_TO_BASE64URL)
    return padded.rstrip(b"=").decode()


def _encode(encoder: json.JSONEncoder, value: object) -> str:
    try:
        return encoder.encode(value)
    except RecursionError:  # hidden, because its traceback has a thousand equal frames
        raise ValueError(TOO_DEEP) from None
