"""JSON written by an encoder that is made once: the standard library makes one for every call; bytes as base64url."""

from __future__ import annotations

import binascii
import json
import json.encoder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

quoted = json.encoder.encode_basestring  # writes one string


class Writer:
    """Writes JSON on one line, without blanks; NaN is refused, for no JSON reader takes it.

    For a small value making an encoder takes longer than writing does.
    """

    __slots__ = ("_chunks",)

    def __init__(self, *, ascii_only: bool = False, sort_keys: bool = False) -> None:
        """Make the encoder.

        Args:
            ascii_only: whether every other character becomes an escape.
            sort_keys: whether the members of an object stand in the order of their names.

        """
        json_ = json.JSONEncoder(
            ensure_ascii=ascii_only, sort_keys=sort_keys, separators=(",", ":"), allow_nan=False, check_circular=False
        )
        string = json.encoder.encode_basestring_ascii if ascii_only else json.encoder.encode_basestring
        in_c: Any = getattr(json.encoder, "c_make_encoder", None)  # as JSONEncoder looks for it
        self._chunks: Callable[[object, int], Iterable[str]] = (
            in_c(None, json_.default, string, None, ":", ",", sort_keys, False, False)  # noqa: FBT003 - C knows no names
            if in_c
            else lambda value, _level: json_.iterencode(value)
        )

    def __call__(self, value: object) -> str:
        """Write a value.

        Raises:
            TypeError: JSON has nothing like it.
            ValueError: a number that JSON does not have, or a value that never ends.

        """
        try:
            return "".join(self._chunks(value, 0))
        except RecursionError:
            message = "nested too deep"
            raise ValueError(message) from None


_TO_BASE64URL = bytes.maketrans(b"+/", b"-_")


def base64url(raw: bytes) -> str:
    """Write bytes as base64url without padding, which stands in JSON and in a header as it is (RFC 4648 §5)."""
    return binascii.b2a_base64(raw, newline=False).translate(_TO_BASE64URL, b"=").decode("ascii")
