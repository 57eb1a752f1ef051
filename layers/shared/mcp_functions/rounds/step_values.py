"""The values of a step in the record of a conversation: a digest of its arguments, and its result as JSON.

A later round may run in another process, where a set has another order. So the digest sorts sets. The recorded JSON is
read as the type in the return annotation of the step's function.
"""

from __future__ import annotations

import inspect
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, cast, get_type_hints

from mcp_functions.protocol.json_writer import base64url
from mcp_functions.protocol.plain_values import NotJson, to_json
from mcp_functions.schemas.type_reader import read_type
from mcp_functions.seal.canonical_json import canonical_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.schemas.json_types import JsonType

DIGEST_BYTES = 16


def digest_arguments(args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    """Return the digest of a call's arguments.

    Raises:
        TypeError, ValueError, RecursionError: JSON cannot carry them.
    """
    digest = canonical_digest(b"", to_record(_sort_sets([args, kwargs])))
    return base64url(digest[:DIGEST_BYTES])


def read_return_type(function: Callable[..., Any]) -> JsonType | None:
    """Read the return annotation of a function; None if it has no type that JSON can be read as."""
    function = _without_wrappers(function)
    if not inspect.isroutine(function) and not isinstance(function, type):
        function = type(function).__call__
    try:
        annotation: Any = function
        if not isinstance(function, type):
            annotation = get_type_hints(function, include_extras=True).get("return")
        return None if annotation in (None, Any, object) else read_type(annotation)
    except (TypeError, NameError, AttributeError):
        return None  # a name that only type checkers see, or a type that JSON cannot hold


def _without_wrappers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function inside decorators, which have it as `__wrapped__`, and inside functools.partial (`func`)."""
    inner: Any = getattr(function, "__wrapped__", None) or getattr(function, "func", None)
    return _without_wrappers(inner) if inner else function


def is_json(value: object) -> bool:
    """Check whether a value comes back from JSON unchanged; a tuple may come back as a list."""
    if type(value) in (list, tuple):
        return all(map(is_json, cast("list[Any]", value)))
    if type(value) is dict:
        return all(type(key) is str and is_json(member) for key, member in value.items())
    return value is None or type(value) in (str, int, float, bool)


def to_record(value: object) -> object:
    """Return a value as JSON: a value that a result can hold, or one that pydantic can write."""
    try:
        return to_json(value)
    except NotJson:
        from pydantic_core import to_jsonable_python  # noqa: PLC0415 - only for values that a result cannot hold

        return to_jsonable_python(value, by_alias=True)


def _sort_sets(value: object) -> object:
    """Sort the members of sets, because their order differs between processes."""
    if isinstance(value, set | frozenset):
        return sorted(map(_sort_sets, value), key=repr)
    if isinstance(value, dict):
        return {key: _sort_sets(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_sort_sets(member) for member in value]
    if hasattr(value, "model_dump"):
        return _sort_sets(value.model_dump(by_alias=True, warnings=False))  # a warning would quote values in the log
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _sort_sets(getattr(value, name)) for name in value.__dataclass_fields__}
    return value
