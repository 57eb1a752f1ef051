"""The value of one header: text as it is, or as `=?base64?…?=` if a header cannot hold the text (basic/transports)."""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING

from mcp_functions.protocol.errors import HeaderMismatch

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "=?base64?"
SUFFIX = "?="


def check_value(headers: Mapping[str, str], name: str, expected: str) -> None:
    """Check that a header has the value that the body has.

    Args:
        headers: the headers of the HTTP request, with names in lower case.
        name: the name of the header, as error messages spell it.
        expected: the value in the body.

    Raises:
        HeaderMismatch: the header is missing, malformed or different.
    """
    if read_value(headers, name) != expected:
        raise mismatch(name)


def read_value(headers: Mapping[str, str], name: str) -> str:
    """Return the decoded value of a header.

    Raises:
        HeaderMismatch: the header is missing or malformed.
    """
    value = headers.get(name.lower())
    if value is None:
        raise HeaderMismatch(message=f"The header {name} is missing")
    try:
        return decode(value)
    except ValueError:
        raise HeaderMismatch(message=f"The header {name} is not valid base64") from None


def mismatch(name: str) -> HeaderMismatch:
    """Return the error of a header that differs from the body. It quotes neither of the two values."""
    return HeaderMismatch(message=f"The header {name} does not say what the body says")


def decode(value: str) -> str:
    """Decode a header value.

    Raises:
        ValueError: the value is marked as base64, but is not strict base64 of UTF-8.
    """
    value = value.strip(" \t")
    is_marked = value.startswith(PREFIX) and value.endswith(SUFFIX) and len(value) >= len(PREFIX) + len(SUFFIX)
    if not is_marked:
        return value
    encoded = value[len(PREFIX) : -len(SUFFIX)]
    decoded = binascii.a2b_base64(encoded, strict_mode=True)
    if binascii.b2a_base64(decoded, newline=False).decode() != encoded:
        raise ValueError(encoded)
    return decoded.decode()


def encode(value: str) -> str:
    """Encode a text for `decode`: as base64 if a header cannot hold it."""
    is_plain = value.isascii() and value.isprintable() and value == value.strip()
    if is_plain and not value.startswith(PREFIX):
        return value
    return f"{PREFIX}{binascii.b2a_base64(value.encode(), newline=False).decode()}{SUFFIX}"
