"""The canonical form of a JSON value, and its digest (envelope.md §9.3).

Arguments that differ only in their spelling have the same form, so a client may write `2` or `2.0`, or reorder keys.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.json_reader import CONTAINERS
from mcp_functions.protocol.json_writer import CHUNK, chunks, dumps_ascii

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MAX_DEPTH = 64  # levels of objects and arrays in arguments
_RUN = 256  # items of a list that are written at once
_SCALARS = frozenset({int, float, bool, type(None)})


def canonical_digest(label: bytes, value: object) -> bytes:
    """Return the SHA-256 of a label and a value's canonical form.

    The form is never in memory as a whole: it writes `1e308` with 309 digits, so 4 MiB of arguments become 217 MB.

    Raises:
        ValueError: the value has no canonical form.
    """
    digest = hashlib.sha256(label)
    write_canonical(value, lambda text: digest.update(text.encode("ascii")))
    return digest.digest()


def write_canonical(value: object, write: Callable[[str], object]) -> None:
    """Write the canonical form of a JSON value, piece by piece; no piece is large.

    Integers are exact, integral floats become integers, keys are sorted, strings are ASCII with escapes.

    Raises:
        ValueError: the value is nested deeper than 64, or has a number that JSON does not have.
    """
    try:
        _write(value, write, MAX_DEPTH)
    except TypeError:
        message = "not a JSON value"
        raise ValueError(message) from None


def _write(value: object, write: Callable[[str], object], levels: int) -> None:
    """Write a value that may have at most `levels` levels of objects and arrays."""
    if isinstance(value, str):
        _write_string(value, write)
    elif type(value) is int:
        write(str(value))
    elif not isinstance(value, CONTAINERS):
        write(_scalars([value]))
    elif not levels:
        message = f"nested deeper than {MAX_DEPTH}"
        raise ValueError(message)
    elif isinstance(value, dict):
        _write_members(value, write, levels - 1)
    else:
        _write_items(value, write, levels - 1)


def _write_string(text: str, write: Callable[[str], object]) -> None:
    if len(text) <= CHUNK:
        write(dumps_ascii(text))
        return
    write('"')
    for part in chunks(text):
        write(dumps_ascii(part)[1:-1])
    write('"')


def _write_members(members: dict[str, Any], write: Callable[[str], object], levels: int) -> None:
    before = "{"
    for key in sorted(members):
        write(before)
        _write_string(key, write)
        write(":")
        _write(members[key], write, levels)
        before = ","
    write("}" if members else "{}")


def _write_items(items: Sequence[Any], write: Callable[[str], object], levels: int) -> None:
    before = "["
    for start in range(0, len(items), _RUN):
        run = items[start : start + _RUN]
        if len(run) == _RUN and _SCALARS.issuperset(map(type, run)):  # a long list of numbers takes few steps
            write(before + _scalars(run))
            before = ","
            continue
        for item in run:
            write(before)
            _write(item, write, levels)
            before = ","
    write("]" if items else "[]")


def _scalars(values: Sequence[Any]) -> str:
    """Write numbers, booleans and nulls with commas between them; an integral float is written as an integer."""
    exact = [int(value) if isinstance(value, float) and value.is_integer() else value for value in values]
    try:
        return dumps_ascii(exact)[1:-1]
    except ValueError:
        message = "not a JSON value"
        raise ValueError(message) from None
