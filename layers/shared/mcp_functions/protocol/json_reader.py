r"""A strict JSON reader for requests that the server does not trust, on top of the standard library's decoder.

    {"a": 1, "a": 2}              refused, because one reader takes the first member, and another the last
    NaN, Infinity, 1e999          refused, because JSON or a double has no such number
    more than 64 levels           refused, because recursive code that reads the value later would fail
    "\ud83d", half of an emoji    refused, because UTF-8 cannot hold half of a surrogate pair

A number without a fraction becomes an `int`, also if it was written as 1.0. So 1.0 and 1 are equal in a hash of the
arguments.
"""

from __future__ import annotations

import gc
import json
import re
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import ParseError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.protocol.wire_types import JSONObject, JSONValue

MAX_DEPTH = 64  # levels of nested arrays and objects in a request
SURROGATE = r"\\u[dD]"  # begins an escape that may be half of a surrogate pair: \ud83d


def loads(text: str | bytes) -> JSONValue:
    """Read JSON strictly; ParseError if it is no JSON, ambiguous, nested too deep, or not whole Unicode."""
    try:
        string = text if isinstance(text, str) else text.decode()
        string.encode()  # a check: the text itself may hold half of a surrogate pair
        # The collector would look at the new containers again and again, although none of them is garbage yet. Then
        # 4 MiB of nested arrays would take four times as long.
        with GcPause():
            value = _decoder.decode(string)
        if may_be_deeper(string, MAX_DEPTH) and is_deeper(value, MAX_DEPTH):
            raise ParseError(message=f"JSON is nested deeper than {MAX_DEPTH} levels")
        if "\\" in string and re.search(SURROGATE, string):  # few requests have escapes
            _check_unicode(value)
    # `from None` here and below, because the texts of these errors quote the request
    except UnicodeEncodeError:
        raise ParseError(message="A JSON string holds half of a surrogate pair") from None
    except (ValueError, RecursionError) as error:
        raise ParseError(reason=type(error).__name__) from None
    return value


def _read_object(members: list[tuple[str, JSONValue]]) -> JSONObject:
    value = dict(members)
    if len(value) != len(members):
        raise ParseError(message="A JSON object holds the same key twice")
    return value


MAX_EXACT = 2**53  # up to this number, each integer has a double of its own


def _read_float(text: str) -> int | float:
    value = float(text)
    if abs(value) == float("inf"):  # as `float` reads a number that is too large for a double
        raise ParseError(message="A JSON number is too large")
    if value.is_integer() and abs(value) <= MAX_EXACT:
        return int(value)
    return value


DIGITS_OF_DOUBLE = 309  # the largest double, 1.8e308, has so many digits


def _read_integer(text: str) -> int:
    if len(text) >= DIGITS_OF_DOUBLE:
        _read_float(text)  # a check: an integer has the limit of a double, too
    return int(text)


def _read_constant(_name: str) -> float:
    raise ParseError(message="NaN and Infinity are not JSON")


_decoder = json.JSONDecoder(
    object_pairs_hook=_read_object, parse_float=_read_float, parse_int=_read_integer, parse_constant=_read_constant
)


def _check_unicode(value: object) -> None:
    """Raise UnicodeEncodeError if a string in a value holds half of a surrogate pair, which an escape wrote.

    Each string is encoded alone. One text of all strings would need four bytes for each character if it had an emoji.
    """
    for _level, container in walk([value]):
        items = [*container, *container.values()] if isinstance(container, dict) else container
        for item in items:
            if isinstance(item, str):
                item.encode()


class GcPause:
    """Pauses the garbage collector of the process while code creates many objects and drops few."""

    def __enter__(self) -> None:
        """Pause the collector."""
        self._was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *_error: object) -> None:
        """Resume the collector, if it was running."""
        if self._was_enabled:
            gc.enable()


CONTAINERS = (dict, list, tuple)
MAX_VALUES = 100_000  # the most values in one document that pydantic or jsonschema validates


def copy_json(value: JSONValue) -> JSONValue:
    """Copy a JSON value and every container in it, so that a change to the copy does not change the original."""
    if type(value) is dict:
        return {key: copy_json(member) for key, member in value.items()}
    if type(value) is list:
        return [copy_json(member) for member in value]
    return value


def check_size(value: object) -> None:
    """Raise a ValueError for a value that is too expensive to validate: pydantic needs 400 bytes for each error."""
    count = sum(len(container) for _level, container in walk(value))
    if count > MAX_VALUES:
        raise ValueError(f"holds more than {MAX_VALUES} values")


def may_be_deeper(text: str, levels: int) -> bool:
    """Tell whether a JSON text has enough brackets for more than `levels` levels: a fast check before `is_deeper`."""
    return text.count("[") + text.count("{") > levels


def is_deeper(value: object, levels: int) -> bool:
    """Tell whether arrays and objects are nested in more than `levels` levels."""
    return any(level > levels for level, _container in walk(value))


def walk(value: object) -> Iterator[tuple[int, Any]]:
    """Yield every dict, list and tuple in a value, with its level. The value itself has level 1, and comes first.

    There is no recursion, so the value may be nested without limit.
    """
    level = 1
    containers: list[Any] = [value] if isinstance(value, CONTAINERS) else []
    while containers:
        inner: list[Any] = []
        for container in containers:
            yield level, container
            children = container.values() if isinstance(container, dict) else container
            inner += [child for child in children if isinstance(child, CONTAINERS)]
        containers = inner
        level += 1
