"""A strict JSON reader for requests that the server does not trust, on top of the standard library's decoder.

    duplicate keys              refused, because two readers would see two different requests
    NaN, Infinity, 1e999        refused, because JSON or a double has no such number
    more than 64 levels         refused, because recursive code behind this reader would fail
    half of a surrogate pair    refused, because UTF-8 cannot hold it

A number without a fraction becomes an `int` however it was written: 1.0 and 1 must be the same number for every later
reader, also when the arguments are hashed.
"""

from __future__ import annotations

import gc
import json
import re
from typing import TYPE_CHECKING, Any, NoReturn

from mcp_functions.protocol.errors import ParseError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.protocol.wire_types import JSONValue

MAX_DEPTH = 64  # levels of nested arrays and objects in a request
DIGITS_OF_DOUBLE = 309  # the digits of the largest double before its point; longer integers are refused
MAX_VALUES = 100_000  # the values in one document that pydantic or jsonschema validates
MAX_EXACT = 2**53  # a double beyond this no longer identifies one integer
CONTAINERS = (dict, list, tuple)
SURROGATE = r"\\u[dD]"  # the begin of an escape that may be half of a pair: \ud83d


def loads(text: str | bytes) -> JSONValue:
    """Read JSON strictly.

    Raises:
        ParseError: the text is not JSON, is ambiguous, is nested too deep, or is not whole Unicode.
    """
    try:
        string = text if isinstance(text, str) else text.decode()
        string.encode()  # a Python string can hold half of a surrogate pair
        # While a document is read, none of it is garbage. The collector would still look at all of it again for every
        # few hundred containers, and 4 MiB of nested arrays would take four times as long.
        with GcPause():
            value = _decoder.decode(string)
        may_be_deep = string.count("[") + string.count("{") > MAX_DEPTH  # the count is cheap, and includes strings
        if may_be_deep and is_deeper(value, MAX_DEPTH):
            raise ParseError(message=f"JSON is nested deeper than {MAX_DEPTH} levels")
        if "\\" in string and re.search(SURROGATE, string):
            _check_unicode(value)
    # A ParseError passes, because it is no ValueError. The errors of the standard library are hidden with `from None`,
    # because their texts quote the request.
    except UnicodeEncodeError:
        raise ParseError(message="A JSON string holds half of a surrogate pair") from None
    except (ValueError, RecursionError) as error:
        raise ParseError(reason=type(error).__name__) from None
    return value


def copy_json(value: JSONValue) -> JSONValue:
    """Copy a JSON value and every container in it, so that a change to the copy does not change the original."""
    if type(value) is dict:
        return {key: copy_json(member) for key, member in value.items()}
    if type(value) is list:
        return [copy_json(member) for member in value]
    return value


def is_deeper(value: object, levels: int) -> bool:
    """Check without recursion whether containers are nested deeper than `levels`."""
    return any(depth > levels for depth, _containers in enumerate(by_level(value), start=1))


def check_size(value: object) -> None:
    """Refuse a value that is too expensive to validate: pydantic keeps 400 bytes for each invalid value.

    Raises:
        ValueError: the value holds more than MAX_VALUES values.
    """
    count = 0
    for containers in by_level(value):
        count += sum(map(len, containers))
    if count > MAX_VALUES:
        message = f"holds more than {MAX_VALUES} values"
        raise ValueError(message)


class GcPause:
    """Pauses the garbage collector while code creates many objects and drops few."""

    def __enter__(self) -> None:
        """Pause the collector."""
        self._was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *_error: object) -> None:
        """Resume the collector, if it was running."""
        if self._was_enabled:
            gc.enable()


def by_level(value: object) -> Iterator[list[Any]]:
    """Yield the containers of each level, the outermost level first: [[1], {"a": []}] has levels of 1, 2 and 1."""
    containers: list[Any] = [value] if isinstance(value, CONTAINERS) else []
    while containers:
        yield containers
        inner = []
        for container in containers:
            children = container.values() if isinstance(container, dict) else container
            inner += [child for child in children if isinstance(child, CONTAINERS)]
        containers = inner


def _read_object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(members)
    if len(value) != len(members):
        raise ParseError(message="A JSON object holds the same key twice")
    return value


def _read_float(text: str) -> int | float:
    value = float(text)
    _check_magnitude(value)
    if value.is_integer() and abs(value) <= MAX_EXACT:
        return int(value)
    return value


def _read_integer(text: str) -> int:
    if len(text) >= DIGITS_OF_DOUBLE:
        _check_magnitude(float(text))  # the limit is the same for 1e308 and for its digits
    return int(text)


def _check_magnitude(value: float) -> None:
    if abs(value) == float("inf"):  # `float` reads a number that is too large for a double as infinity
        raise ParseError(message="A JSON number is too large")


def _refuse_constant(_name: str) -> NoReturn:
    raise ParseError(message="NaN and Infinity are not JSON")


_decoder = json.JSONDecoder(
    object_pairs_hook=_read_object, parse_float=_read_float, parse_int=_read_integer, parse_constant=_refuse_constant
)


def _check_unicode(value: object) -> None:
    """Raise UnicodeEncodeError if a string holds half of a surrogate pair.

    Each string is encoded alone: if one holds an emoji, a text of all of them would need four bytes per character.
    """
    for containers in by_level([value]):
        for container in containers:
            strings = [*container, *container.values()] if isinstance(container, dict) else container
            for string in strings:
                if isinstance(string, str):
                    string.encode()
