r"""The canonical form of a JSON value, and its digest (envelope.md §9.3).

Arguments that differ only in their spelling have the same form, so a client may write `2` or `2.0`, or reorder keys:

    {"n": 2.0, "a": "é"}  ->  {"a":"\u00e9","n":2}

A state is bound to this digest. With other bytes here, states that were sealed before would be refused.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.json_reader import CONTAINERS, MAX_DEPTH
from mcp_functions.protocol.json_writer import chunks, dumps_ascii

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


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
    """Write the canonical form of a JSON value, piece by piece.

    Args:
        value: the value, which may have at most `levels` levels of objects and arrays.
        write: the function that gets each piece.
        levels: the levels that are left.

    Raises:
        TypeError, ValueError: the value is nested deeper, or is not JSON.
    """
    if isinstance(value, str):
        _write_string(value, write)
    elif not isinstance(value, CONTAINERS):
        write(_scalar(value))
    elif levels == 0:
        message = f"nested deeper than {MAX_DEPTH}"
        raise ValueError(message)
    elif isinstance(value, dict):
        _write_object(value, write, levels - 1)
    else:
        _write_array(value, write, levels - 1)


def _write_object(members: dict[str, Any], write: Callable[[str], object], levels: int) -> None:
    write("{")
    for position, name in enumerate(sorted(members)):  # Python compares texts by code points, as §9.3 does
        if position > 0:
            write(",")
        _write_string(name, write)
        write(":")
        write_canonical(members[name], write, levels)
    write("}")


def _write_array(items: Sequence[Any], write: Callable[[str], object], levels: int) -> None:
    write("[")
    for position, item in enumerate(items):
        if position > 0:
            write(",")
        write_canonical(item, write, levels)
    write("]")


def _write_string(text: str, write: Callable[[str], object]) -> None:
    write('"')
    for part in chunks(text):  # in parts, because with escapes a long text takes six times its memory
        write(dumps_ascii(part)[1:-1])  # without the quotes of the part
    write('"')


def _scalar(value: object) -> str:
    """Return the text of null, a boolean or a number."""
    match value:
        case None:
            return "null"
        case True:
            return "true"
        case False:
            return "false"
        case int():
            return str(value)
        case float() if value.is_integer():
            return str(int(value))  # 2.0 is 2, and 1e23 has all of its digits
        case _:
            return dumps_ascii(value)  # the shortest digits of a fraction; raises for NaN and for any other type
