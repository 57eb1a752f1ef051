r"""The canonical form of a JSON value, and its digest (envelope.md §9.3).

Arguments that differ only in their spelling have the same form, so a client may write `2` or `2.0`, or reorder keys:

    {"n": 2.0, "a": "é"}  ->  {"a":"\u00e9","n":2}

A state is bound to this digest. If this module wrote other bytes, states that were sealed before would be refused.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from mcp_functions.protocol.json_reader import MAX_DEPTH
from mcp_functions.protocol.json_writer import dumps_ascii, escape_in_chunks

if TYPE_CHECKING:
    from collections.abc import Callable


def canonical_digest(label: bytes, value: object) -> bytes:
    """Return the SHA-256 of a label, which names the kind of the value, and of the value's canonical form.

    The digest gets the form piece by piece, because a short value may have a long form: `1e308` becomes 309 digits, so
    arguments of 4 MiB could take 217 MB.

    Raises:
        TypeError, ValueError: the value is not JSON, or is nested deeper than `MAX_DEPTH`.
    """
    digest = hashlib.sha256(label)
    _write_value(value, digest.update, MAX_DEPTH)
    return digest.digest()


def _write_value(value: object, write: Callable[[bytes], object], levels: int) -> None:
    """Give the canonical form to `write`; `levels` is how many levels of objects and arrays the value may have."""
    if levels == 0 and isinstance(value, (dict, list, tuple)):
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    if isinstance(value, dict):
        write(b"{")
        for position, name in enumerate(sorted(value)):  # by code points, as envelope.md §9.3
            if position > 0:
                write(b",")
            _write_string(name, write)
            write(b":")
            _write_value(value[name], write, levels - 1)
        write(b"}")
    elif isinstance(value, (list, tuple)):
        write(b"[")
        for position, item in enumerate(value):
            if position > 0:
                write(b",")
            _write_value(item, write, levels - 1)
        write(b"]")
    elif isinstance(value, str):
        _write_string(value, write)
    else:
        write(_number_or_constant(value))


def _write_string(text: str, write: Callable[[bytes], object]) -> None:
    write(b'"')
    for chunk in escape_in_chunks(text):
        write(chunk.encode())
    write(b'"')


def _number_or_constant(value: object) -> bytes:
    """Return the form of a number, a boolean or null."""
    if isinstance(value, int) and not isinstance(value, bool):
        return b"%d" % value
    if isinstance(value, float) and value.is_integer():
        return b"%d" % value  # 2.0 is 2, and 1e23 has all of its digits
    return dumps_ascii(value).encode()
