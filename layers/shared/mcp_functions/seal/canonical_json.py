"""The canonical form of a JSON value, and its digest (envelope.md §9.3).

Arguments that differ only in their spelling have the same form, so a client may write `2` or `2.0`, or reorder keys.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.json_reader import CONTAINERS, MAX_DEPTH
from mcp_functions.protocol.json_writer import chunks, dumps_ascii

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_RUN = 256  # how many items of a list are written at once, if they are scalars
_SCALARS = frozenset({int, float, bool, type(None)})


def canonical_digest(label: bytes, value: object) -> bytes:
    """Return the SHA-256 of a label and a value's canonical form.

    The form is never in memory as a whole: it writes `1e308` with 309 digits, so 4 MiB of arguments become 217 MB.

    Raises:
        TypeError, ValueError: the value has no canonical form.
    """
    digest = hashlib.sha256(label)
    write_canonical(value, lambda text: digest.update(text.encode("ascii")))
    return digest.digest()


def write_canonical(value: object, write: Callable[[str], object], levels: int = MAX_DEPTH) -> None:
    """Write the canonical form of a JSON value, piece by piece; no piece is large.

    Integers are exact, integral floats become integers, keys are sorted, strings are ASCII with escapes.

    Args:
        value: the value, which may have at most `levels` levels of objects and arrays.
        write: the function that gets each piece.
        levels: the levels that are left.

    Raises:
        TypeError, ValueError: the value is nested deeper, or is not JSON.
    """
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
        write_canonical(members[key], write, levels)
        before = ","
    write("}" if members else "{}")


def _write_items(items: Sequence[Any], write: Callable[[str], object], levels: int) -> None:
    before = "["
    for start in range(0, len(items), _RUN):
        run = items[start : start + _RUN]
        if _SCALARS.issuperset(map(type, run)):  # so a long list of numbers takes few calls
            write(before + _scalars(run))
            before = ","
            continue
        for item in run:
            write(before)
            write_canonical(item, write, levels)
            before = ","
    write("]" if items else "[]")


def _scalars(values: Sequence[Any]) -> str:
    """Write numbers, booleans and nulls with commas between them; an integral float is written as an integer."""
    exact = [int(value) if isinstance(value, float) and value.is_integer() else value for value in values]
    return dumps_ascii(exact)[1:-1]
