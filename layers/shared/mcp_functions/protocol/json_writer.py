r"""Compact JSON from the standard library's encoder, and base64url.

    value               {"b": "✓", "a": 1}
    dumps               {"b":"✓","a":1}
    dumps_ascii         {"b":"\u2713","a":1}
    dumps_sorted        {"a":1,"b":"\u2713"}    equal values have equal texts
    encode_in_pieces    the UTF-8 of `dumps`, made slower and in less memory

All of them refuse NaN, and a value that is nested too deep. A value that contains itself is nested without end.
"""

from __future__ import annotations

import binascii
import json
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CHUNK = 16 * 1024  # characters
TOO_DEEP = "nested too deep"

# `check_circular` is False because it would slow down every call. Without it, a value that contains itself ends in a
# RecursionError.
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
    """Serialize as `dumps` does, to UTF-8, for large values.

    No text of the whole value is made: with one emoji in it, Python would use four bytes for each character.

    Raises:
        TypeError, ValueError: as `dumps`; ValueError also for half of a surrogate pair.
    """
    buffer = BytesIO()
    try:
        for piece in _UNICODE.iterencode(value):
            buffer.write(piece.encode())
    except RecursionError:  # `from None` as in `_encode`
        raise ValueError(TOO_DEEP) from None
    return buffer.getvalue()


def dumps_with_member(members: Mapping[str, object], name: str, text: str) -> str:
    """Serialize an object whose last member is JSON already, so that it is not serialized again.

    Args:
        members: the other members, at least one, and none with this name.
        name: the name of the last member.
        text: the value of the last member as JSON.
    """
    others = dumps(members).removesuffix("}")
    return f"{others},{dumps(name)}:{text}}}"


def chunks(text: str) -> Iterator[str]:
    """Cut a long text into chunks of 16,384 characters, so that no second copy of the whole text is needed."""
    for start in range(0, len(text), CHUNK):
        yield text[start : start + CHUNK]


def base64url(raw: bytes) -> str:
    """Encode bytes as base64url without padding (RFC 4648, section 5), which needs no escape in JSON or in a header.

    `base64.urlsafe_b64encode` does the same, but its import takes 1 ms of a cold start.
    """
    padded = binascii.b2a_base64(raw, newline=False).translate(_TO_BASE64URL)
    return padded.rstrip(b"=").decode()


def _encode(encoder: json.JSONEncoder, value: object) -> str:
    try:
        return encoder.encode(value)
    except RecursionError:  # `from None`, because the traceback of a RecursionError has a thousand equal frames
        raise ValueError(TOO_DEEP) from None
