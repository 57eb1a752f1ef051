r"""The canonical form of a JSON value, and its digest (envelope.md §9.3).

Arguments that differ only in their spelling have the same form, so a client may write `2` or `2.0`, or reorder keys:

    {"n": 2.0, "a": "é"}  ->  {"a":"\u00e9","n":2}

A state is bound to this digest. If this module wrote other bytes, states that were sealed before would be refused.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from mcp_functions.protocol.json_reader import MAX_DEPTH
from mcp_functions.protocol.json_writer import chunks, dumps_ascii

if TYPE_CHECKING:
    from collections.abc import Callable


def canonical_digest(label: bytes, value: object) -> bytes:
    """Return the SHA-256 of a label and a value's canonical form.

    The form is never in memory as a whole: `1e308` (5 characters) becomes 309 digits, so 4 MiB could become 217 MB.

    Raises:
        TypeError, ValueError: the value has no canonical form.
    """
    digest = hashlib.sha256(label)
    write_canonical(value, digest.update)
    return digest.digest()


def write_canonical(value: object, write: Callable[[bytes], object], levels: int = MAX_DEPTH) -> None:
    """Write the canonical form of a JSON value, piece by piece.

    Args:
        value: the value.
        write: the function that gets each piece.
        levels: how many levels of objects and arrays the value may have.

    Raises:
        TypeError, ValueError: the value has more levels, or is not JSON.
    """
    if levels == 0 and isinstance(value, (dict, list, tuple)):
        message = f"nested deeper than {MAX_DEPTH}"
        raise ValueError(message)
    if isinstance(value, dict):
        write(b"{")
        for position, name in enumerate(sorted(value)):  # Python compares texts by code points, as §9.3 does
            if position > 0:
                write(b",")
            _write_string(name, write)
            write(b":")
            write_canonical(value[name], write, levels - 1)
        write(b"}")
    elif isinstance(value, (list, tuple)):
        write(b"[")
        for position, item in enumerate(value):
            if position > 0:
                write(b",")
            write_canonical(item, write, levels - 1)
        write(b"]")
    elif isinstance(value, str):
        _write_string(value, write)
    else:
        write(_number_or_constant(value))


def _number_or_constant(value: object) -> bytes:
    """Return the form of a number, a boolean or null.

    Raises:
        TypeError, ValueError: the value is NaN or infinite, or is not JSON.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return b"%d" % value
    if isinstance(value, float) and value.is_integer():
        return b"%d" % value  # 2.0 is 2, and 1e23 has all of its digits
    return dumps_ascii(value).encode()


def _write_string(text: str, write: Callable[[bytes], object]) -> None:
    """Write a string in parts: with escapes, a long text would take six times its memory."""
    write(b'"')
    for part in chunks(text):  # each character has its own escape, so the parts can be escaped one by one
        write(dumps_ascii(part)[1:-1].encode())  # without the quotes of the part
    write(b'"')
