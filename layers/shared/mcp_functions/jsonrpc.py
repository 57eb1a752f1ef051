"""Text to one message, and one message to text.

Requests come from strangers, so the reader is strict: one object, no duplicate keys (two readers would see two
requests), no NaN, bounded depth, whole Unicode. A JSON number without a fraction is an int, however it was written: 1.0
and 1 are the same number to every later reader, the argument digest included.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard, cast

from mcp_functions.errors import InvalidRequest, ParseError
from mcp_functions.writer import Writer

if TYPE_CHECKING:
    from mcp_functions.schema import JSONRPCNotification, JSONRPCRequest

MAX_DEPTH = 64
BLANKS = " \t\r\n"
LONGEST = 309  # digits of the largest double
DIGITS = re.compile(rf"[0-9]{{{LONGEST}}}")
EVERY, SOME = 38, re.compile(r"[0-9]{8}")  # of these, at least eight stand at every 38th place
SHORT = 16 * 1024  # characters
IDS = (str, int)
EXACT = 2**53  # beyond it a double no longer names one integer


def parse(body: str | bytes) -> JSONRPCRequest | JSONRPCNotification:
    """Read one JSON-RPC request or notification.

    Args:
        body: of a POST; UTF-8 if bytes.

    Raises:
        ParseError: it is not JSON, or JSON that two readers could understand differently.
        InvalidRequest: it is JSON, but not one request or notification (basic, "Messages").

    """
    read = message = loads(body)
    # "Requests MUST include a string or integer ID. … the ID MUST NOT be null."
    if (
        type(read) is dict
        and read.get("jsonrpc") == "2.0"
        and type(read.get("method")) is str
        and type(read.get("id")) in IDS
    ):
        if type(read.get("params")) is not dict:
            _check_params(read, read["id"])
        return message  # type: ignore[no-any-return]  # looked at above
    match read:
        case {"jsonrpc": "2.0", "method": str()} as message if "id" not in message:
            _check_params(message, None)
            return cast("JSONRPCNotification", message)
        case list():
            text = "Batches are not part of this revision: send one request"
        case {"jsonrpc": "2.0", "result": _} | {"jsonrpc": "2.0", "error": _}:
            text = "A server of this revision sends no requests, so it takes no responses"
        case {"jsonrpc": "2.0", "method": str(), "id": _}:
            text = "The request id must be a string or an integer"
        case {"id": id_} if _is_id(id_):
            raise InvalidRequest(id=id_)
        case _:
            text = InvalidRequest.sentence
    raise InvalidRequest(text)


def is_request(message: JSONRPCRequest | JSONRPCNotification) -> TypeGuard[JSONRPCRequest]:
    """Tell a request from a notification: "Notifications MUST NOT include an ID"."""
    return "id" in message


def loads(text: str | bytes) -> Any:  # noqa: ANN401 - JSON is any value
    """Read JSON strictly.

    Raises:
        ParseError: it is not JSON, or ambiguous, too deep, or not whole Unicode.

    """
    try:
        string = text if isinstance(text, str) else text.decode()
        if not string.isascii():
            string.encode()  # a string of Python can hold half of a surrogate pair
        value, end, most = _scanned(string := string.strip(BLANKS))
    except ParseError:
        raise
    except (ValueError, RecursionError) as error:
        raise ParseError(reason=type(error).__name__) from None
    if end != len(string):
        raise ParseError(reason="JSONDecodeError")  # something stands behind the document
    if most > MAX_DEPTH and _may_be_deep(string) and _depth(value) > MAX_DEPTH:
        message = f"JSON is nested deeper than {MAX_DEPTH} levels"
        raise ParseError(message)
    if "\\" in string and ("\\ud" in string or "\\uD" in string):
        _check_unicode(value)
    return value


def fresh(value: Any) -> Any:  # noqa: ANN401 - JSON is any value
    """Copy a JSON value, so that whoever changes the copy changes nothing else."""
    if type(value) is dict:
        return dict(zip(value, map(fresh, value.values()), strict=True))
    if type(value) is list:
        return list(map(fresh, value))
    return value


def _scanned(string: str) -> tuple[Any, int, int]:
    """Read the document that a text begins with; say where it ends, and how many values it holds at most."""
    # A megabyte is looked through in a thirtieth of the time.
    if len(string) >= LONGEST and SOME.search(string[::EVERY]) and DIGITS.search(string):
        return *_counting.raw_decode(string), len(string)
    if len(string) < SHORT:
        try:
            value, end = _scan(string, 0)
            if held := _held(value, string):
                return value, end, held
        except (ParseError, StopIteration, ValueError, RecursionError):
            pass  # the other reader says what is wrong with it, and where
    return *_decoder.raw_decode(string), len(string)


def _held(value: object, string: str) -> int:
    """Count the values in a document, if that proves that no key of its text is lost; 0 if it does not.

    Of a key that comes twice, the reader in C keeps the last alone. But a text has a colon for each key, and those in
    its strings: as many as its value has, or more if keys were lost. A hook that sees every key takes longer than all
    the reading. It is for what is not proven, and for long texts, which may hold a million values in a few objects.
    """
    colons = string.count(":")
    inside, listed = [value], 1
    for item in inside:  # which grows
        if type(item) is dict:
            inside += item.values()
        elif type(item) is list:
            inside += item
            listed += len(item)
    keys = len(inside) - listed
    if keys != colons and "\\u" not in string:  # an escaped colon is in the value, and not in the text
        keys += sum(map(_colons, inside))
    return len(inside) if keys == colons else 0


def _colons(item: object) -> int:
    return item.count(":") if type(item) is str else "".join(item).count(":") if type(item) is dict else 0


def _is_id(value: object) -> bool:
    return type(value) in IDS


def _check_params(message: dict[str, Any], id_: str | int | None) -> None:
    if not isinstance(message.setdefault("params", {}), dict):
        text = "params must be an object"
        raise InvalidRequest(text, id=id_)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        message = "A JSON object holds the same key twice"
        raise ParseError(message)
    return found


def _number(text: str) -> int | float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        message = "A JSON number is too large"
        raise ParseError(message)
    return int(value) if value.is_integer() and abs(value) <= EXACT else value


def _integer(text: str) -> int:
    # written without a fraction or with one, a number has one limit; and whatever is computed from it can be written
    _number(text)
    return int(text)


def _constant(_name: str) -> NoReturn:
    message = "NaN and Infinity are not JSON"
    raise ParseError(message)


def _may_be_deep(string: str) -> bool:
    """Look for more brackets than there may be levels; in a long text counting them all would take much longer."""
    if len(string) < SHORT:
        return string.count("[") + string.count("{") > MAX_DEPTH
    left = MAX_DEPTH
    for bracket in "[{":
        at = string.find(bracket)
        while at >= 0 and left >= 0:
            left -= 1
            at = string.find(bracket, at + 1)
    return left < 0


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
    return depth


dumps = Writer()
in_order = Writer(ascii_only=True, sort_keys=True)  # for digests: one text for every order of members

# json.loads would make these anew for every message, and `decode` would look for blanks twice more, with a pattern.
_unhooked: Any = json.JSONDecoder(parse_float=_number, parse_constant=_constant)
_scan = _unhooked.scan_once
_decoder = json.JSONDecoder(object_pairs_hook=_object, parse_float=_number, parse_constant=_constant)
_counting = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_number, parse_int=_integer, parse_constant=_constant
)


def _check_unicode(value: object) -> None:
    try:
        dumps(value).encode()
    except UnicodeEncodeError:
        message = "A JSON string holds half of a surrogate pair"
        raise ParseError(message) from None
