r"""Writes JSON without blanks, and bytes as base64 and base64url.

    value           {"b": "✓", "a": 1}
    dumps           {"b":"✓","a":1}
    dumps_ascii     {"b":"\u2713","a":1}
    dumps_sorted    {"a":1,"b":"\u2713"}

Each function for JSON raises ValueError for NaN or Infinity, and for a value that is nested too deep or contains
itself. It raises TypeError for a value that has no JSON form.
"""

from __future__ import annotations

import binascii
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# `check_circular` would slow down every call. Without it, a value that contains itself ends in a RecursionError.
_OPTIONS: dict[str, Any] = {"separators": (",", ":"), "allow_nan": False, "check_circular": False}
_UNICODE = json.JSONEncoder(ensure_ascii=False, **_OPTIONS)
_ASCII = json.JSONEncoder(**_OPTIONS)
_SORTED = json.JSONEncoder(sort_keys=True, **_OPTIONS)


def dumps(value: object) -> str:
    """Write a value as JSON."""
    return _encode(_UNICODE, value)


def dumps_ascii(value: object) -> str:
    """Write a value as JSON, and escape every character outside ASCII."""
    return _encode(_ASCII, value)


def dumps_sorted(value: object) -> str:
    """Write as `dumps_ascii` does, with the members of each object sorted by name: equal values have equal texts."""
    return _encode(_SORTED, value)


def _encode(encoder: json.JSONEncoder, value: object) -> str:
    try:
        return encoder.encode(value)
    except RecursionError:  # `from None`, because its traceback has a thousand equal frames
        raise ValueError("nested too deep") from None


def dumps_with_member(members: Mapping[str, object], name: str, text: str) -> str:
    """Write an object whose last member is JSON already (`text`). It has at least one other member."""
    others = dumps(members).removesuffix("}")
    return f"{others},{dumps(name)}:{text}}}"


CHUNK = 16 * 1024  # characters


def escape_in_chunks(text: str) -> Iterator[str]:
    """Yield what `dumps_ascii` writes between the quotes of a long text, which may take six times its memory."""
    for start in range(0, len(text), CHUNK):
        yield dumps_ascii(text[start : start + CHUNK])[1:-1]


def to_base64(raw: bytes | bytearray | memoryview) -> str:
    """Encode bytes as base64 (RFC 4648, section 4)."""
    return binascii.b2a_base64(raw, newline=False).decode()


_TO_BASE64URL = bytes.maketrans(b"+/", b"-_")


def base64url(raw: bytes) -> str:
    """Encode bytes as base64url without padding (RFC 4648, section 5), which needs no escape in JSON or in a header.

    `base64.urlsafe_b64encode` does the same, but its import takes 1 ms of a cold start.
    """
    padded = binascii.b2a_base64(raw, newline=False).translate(_TO_BASE64URL)
    return padded.rstrip(b"=").decode()
