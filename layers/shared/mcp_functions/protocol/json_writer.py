"""JSON as the standard library writes it: on one line, without blanks, NaN refused. And bytes as base64url."""

from __future__ import annotations

import binascii
import json
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PART = 16 * 1024  # characters
TOO_DEEP = "nested too deep"

# A value that holds itself is refused as one that is nested too deep: nothing else looks for it.
_COMPACT: dict[str, Any] = {"separators": (",", ":"), "allow_nan": False, "check_circular": False}
_PLAIN = json.JSONEncoder(ensure_ascii=False, **_COMPACT)
_ASCII = json.JSONEncoder(**_COMPACT)
_IN_ORDER = json.JSONEncoder(sort_keys=True, **_COMPACT)


def dumps(value: object) -> str:
    """Write a value.

    Raises:
        TypeError: JSON has nothing like it.
        ValueError: a number that JSON does not have, or a value that never ends.

    """
    return _written(_PLAIN, value)


def joined(members: Mapping[str, object], name: str, text: str) -> str:
    """Write an object whose last member was written before, as `text`."""
    return dumps({**members, name: None}).removesuffix("null}") + text + "}"


def in_ascii(value: object) -> str:
    """Write a value as `dumps` does, every character beyond ASCII as an escape."""
    return _written(_ASCII, value)


def in_order(value: object) -> str:
    """Write a value as `in_ascii` does, and the members of each object in the order of their names."""
    return _written(_IN_ORDER, value)


def encoded(value: object, errors: str = "strict") -> bytes:
    """Write a value as UTF-8.

    Each string is encoded by itself: in a whole text one emoji makes every character take four bytes.

    Args:
        value: JSON.
        errors: what becomes of half a surrogate pair, as `str.encode` says it.

    Raises:
        TypeError, ValueError: as `dumps`.

    """
    written = BytesIO()
    try:
        for piece in _PLAIN.iterencode(value):
            written.write(piece.encode("utf-8", errors))
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    return written.getvalue()


def parts(text: str) -> Iterator[str]:
    """Cut a text into parts that can be copied, escaped and encoded where all of it could not."""
    return (text[start : start + PART] for start in range(0, len(text), PART))


def _written(encoder: json.JSONEncoder, value: object) -> str:
    try:
        return encoder.encode(value)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None


_TO_BASE64URL = bytes.maketrans(b"+/", b"-_")


def base64url(raw: bytes) -> str:
    """Write bytes as base64url without padding, which stands in JSON and in a header as it is (RFC 4648 §5)."""
    return binascii.b2a_base64(raw, newline=False).translate(_TO_BASE64URL, b"=").decode("ascii")
