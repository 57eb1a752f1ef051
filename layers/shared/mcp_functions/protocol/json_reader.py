"""A strict JSON reader for requests that the server does not trust.

It refuses duplicate keys, because two readers would see two different requests. It also refuses NaN, deep nesting and
text that is not whole Unicode. A number without a fraction becomes an `int` however it was written: 1.0 and 1 must be
the same number for every later reader, also when the arguments are hashed.
"""

from __future__ import annotations

import gc
import json
import re
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

from mcp_functions.protocol.errors import ParseError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.protocol.wire_types import JSONValue

MAX_DEPTH = 64
MAX_DIGITS = 309  # the digits of the largest double
SHORT = 16 * 1024  # characters
MAX_VALUES = 100_000  # the values in one document that pydantic or jsonschema validates
MAX_EXACT = 2**53  # a double beyond this no longer identifies one integer
CONTAINERS = (dict, list, tuple)
SURROGATE = r"\\u[dD]"  # the escape of half of a pair, which needs the other half


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
        # In a short text, counting the brackets is cheaper than looking at each container.
        may_be_deep = len(string) > SHORT or string.count("[") + string.count("{") > MAX_DEPTH
        if may_be_deep and is_deeper(value, MAX_DEPTH):
            raise ParseError(message=f"JSON is nested deeper than {MAX_DEPTH} levels")
        if "\\" in string and re.search(SURROGATE, string):
            _check_unicode(value)
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
    return next(islice(by_level(value), levels, None), None) is not None


def check_size(value: object) -> None:
    """Refuse a value that is too expensive to validate: pydantic keeps 400 bytes for each invalid value.

    Raises:
        ValueError: the value holds more than MAX_VALUES values.
    """
    if sum(len(container) for level in by_level(value) for container in level) > MAX_VALUES:
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
    """Yield the containers of each depth, outermost first."""
    level: list[Any] = [value] if isinstance(value, CONTAINERS) else []
    while level:
        yield level
        groups = [container.values() if isinstance(container, dict) else container for container in level]
        level = [child for group in groups for child in group if isinstance(child, CONTAINERS)]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ParseError(message="A JSON object holds the same key twice")
    return members


def _float(text: str) -> int | float:
    value = float(text)
    if abs(value) == float("inf"):
        raise ParseError(message="A JSON number is too large")
    return int(value) if value.is_integer() and abs(value) <= MAX_EXACT else value


def _integer(text: str) -> int:
    if len(text) >= MAX_DIGITS:
        _float(text)  # a number has the same limit with and without a fraction
    return int(text)


def _constant(_name: str) -> NoReturn:
    raise ParseError(message="NaN and Infinity are not JSON")


_decoder = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_int=_integer, parse_constant=_constant)


def _check_unicode(value: object) -> None:
    """Encode each string. A text of all of them would need four bytes for each character, if one is an emoji."""
    for level in by_level([value]):
        for container in level:
            strings = [*container, *container.values()] if isinstance(container, dict) else container
            for string in strings:
                if isinstance(string, str):
                    string.encode()
