"""Text to one message, and one message to text.

Requests come from strangers, so the reader is strict: one object, no duplicate keys (two readers would see two
requests), no NaN, bounded depth, whole Unicode. A JSON number without a fraction is an int, however it was written: 1.0
and 1 are the same number to every later reader, the argument digest included.
"""

from __future__ import annotations

import gc
import json
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard, cast

from mcp_functions.protocol import json_writer
from mcp_functions.protocol.errors import InvalidRequest, ParseError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.protocol.wire_types import JSONRPCNotification, JSONRPCRequest

MAX_DEPTH = 64
LONGEST = 309  # digits of the largest double
LONGEST_ID = 8192  # characters; each response repeats the id of its request, and a progress token stands in many
IDS = (str, int)
MAX_VALUES = 100_000  # in one value that pydantic or `jsonschema` checks
EXACT = 2**53  # beyond it a double no longer names one integer
CONTAINERS = (dict, list, tuple)
COPIED = (dict, list)

dumps, in_order = json_writer.dumps, json_writer.in_order


def parse(body: str | bytes) -> JSONRPCRequest | JSONRPCNotification:
    """Read one JSON-RPC request or notification.

    Args:
        body: of a POST; UTF-8 if bytes.

    Raises:
        ParseError: it is not JSON, or JSON that two readers could understand differently.
        InvalidRequest: it is JSON, but not one request or notification (basic, "Messages").

    """
    return to_message(loads(body))


def to_message(value: Any) -> JSONRPCRequest | JSONRPCNotification:  # noqa: ANN401 - JSON is any value
    """Take a JSON value for a request or a notification.

    Raises:
        InvalidRequest: it is neither.

    """
    match value:
        # "Requests MUST include a string or integer ID. … the ID MUST NOT be null."
        case {"jsonrpc": "2.0", "method": str(), "id": id_} as request if is_id(id_):
            _check_params(request, id_)
            return cast("JSONRPCRequest", request)
        case {"jsonrpc": "2.0", "method": str()} as notification if "id" not in notification:
            _check_params(notification, None)
            return cast("JSONRPCNotification", notification)
        case list():
            text = "Batches are not part of this revision: send one request"
        case {"jsonrpc": "2.0", "result": _} | {"jsonrpc": "2.0", "error": _}:
            text = "A server of this revision sends no requests, so it takes no responses"
        case {"jsonrpc": "2.0", "method": str(), "id": str()}:
            text = f"The request id is longer than {LONGEST_ID} characters"
        case {"jsonrpc": "2.0", "method": str(), "id": _}:
            text = "The request id must be a string or an integer"
        case {"id": id_} if is_id(id_):
            raise InvalidRequest(id=id_)
        case _:
            text = InvalidRequest.sentence
    raise InvalidRequest(text)


def is_request(message: JSONRPCRequest | JSONRPCNotification) -> TypeGuard[JSONRPCRequest]:
    """Tell a request from a notification: "Notifications MUST NOT include an ID"."""
    return "id" in message


def is_id(value: object) -> bool:
    """Tell what may name a request, or its progress: a string that is not too long, or an integer."""
    return type(value) in IDS and not (isinstance(value, str) and len(value) > LONGEST_ID)


def loads(text: str | bytes) -> Any:  # noqa: ANN401 - JSON is any value
    """Read JSON strictly.

    Raises:
        ParseError: it is not JSON, or ambiguous, too deep, or not whole Unicode.

    """
    try:
        string = text if isinstance(text, str) else text.decode()
        if not string.isascii():
            string.encode()  # a string of Python can hold half of a surrogate pair
        value = _decoded(string)
    except ParseError:
        raise
    except (ValueError, RecursionError) as error:
        raise ParseError(reason=type(error).__name__) from None
    if string.count("[") + string.count("{") > MAX_DEPTH and is_deeper(value, MAX_DEPTH):
        message = f"JSON is nested deeper than {MAX_DEPTH} levels"
        raise ParseError(message)
    if "\\" in string and ("\\ud" in string or "\\uD" in string):  # the first test takes no time
        _check_unicode(value)
    return value


def fresh(value: Any) -> Any:  # noqa: ANN401 - JSON is any value
    """Copy a JSON value, so that whoever changes the copy changes nothing else."""
    if type(value) is dict:
        return {key: fresh(member) if type(member) in COPIED else member for key, member in value.items()}
    if type(value) is list:
        return [fresh(member) if type(member) in COPIED else member for member in value]
    return value


def is_deeper(value: object, levels: int) -> bool:
    """Tell whether objects and arrays are nested deeper than that, without recursion."""
    return next(islice(by_level(value), levels, None), None) is not None


def by_level(value: object) -> Iterator[list[Any]]:
    """Go through the objects and arrays of a value: those of one depth at a time."""
    level: list[Any] = [value] if isinstance(value, CONTAINERS) else []
    while level:
        yield level
        groups = [each.values() if isinstance(each, dict) else each for each in level]
        level = [child for group in groups for child in group if isinstance(child, CONTAINERS)]


def check_size(value: object) -> None:
    """Refuse a value that would cost a validator too much: pydantic keeps 400 bytes for each wrong value in it.

    Args:
        value: JSON.

    Raises:
        ValueError: it holds more than MAX_VALUES values.

    """
    if sum(len(container) for level in by_level(value) for container in level) > MAX_VALUES:
        message = f"holds more than {MAX_VALUES} values"
        raise ValueError(message)


def for_pydantic(value: object) -> bytes:
    """Write a value as the JSON that pydantic reads.

    Raises:
        ValueError: it holds more values than may be checked.

    """
    check_size(value)
    return json_writer.encoded(value)


class no_collection:  # noqa: N801 - a context manager that reads as a word
    """Keeps the garbage collector off while much is made and nothing is thrown away."""

    def __enter__(self) -> None:
        """Turn it off."""
        self._collects = gc.isenabled()
        gc.disable()

    def __exit__(self, *_error: object) -> None:
        """Turn it on again, if it was on."""
        if self._collects:
            gc.enable()


def _decoded(text: str) -> Any:  # noqa: ANN401 - JSON is any value
    # Nothing of a document is garbage while it is read. But for every few hundred objects and arrays the garbage
    # collector would look at all of them again: 4 MiB of nested arrays would take four times as long.
    with no_collection():
        return _decoder.decode(text)


def _check_params(message: dict[str, Any], id_: str | int | None) -> None:
    if not isinstance(message.setdefault("params", {}), dict):
        text = "params must be an object"
        raise InvalidRequest(text, id=id_)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        message = "A JSON object holds the same key twice"
        raise ParseError(message)
    return members


def _number(text: str) -> int | float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        message = "A JSON number is too large"
        raise ParseError(message)
    return int(value) if value.is_integer() and abs(value) <= EXACT else value


def _integer(text: str) -> int:
    if len(text) >= LONGEST:
        _number(text)  # written without a fraction or with one, a number has one limit
    return int(text)


def _constant(_name: str) -> NoReturn:
    message = "NaN and Infinity are not JSON"
    raise ParseError(message)


_decoder = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_number, parse_int=_integer, parse_constant=_constant
)


def _check_unicode(value: object) -> None:
    left = [value]
    try:
        while left:
            item = left.pop()
            if isinstance(item, str):
                item.encode()
            elif isinstance(item, dict):
                left += item
                left += item.values()
            elif isinstance(item, list):
                left += item
    except UnicodeEncodeError:
        message = "A JSON string holds half of a surrogate pair"
        raise ParseError(message) from None
