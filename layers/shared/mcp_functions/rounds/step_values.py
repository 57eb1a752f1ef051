"""The arguments and the result of a step, as the record has them.

    def reserve(city: str) -> Flight: ...

    step("reserve", reserve, city)    the record has a digest of [[city], {}], and the Flight as {"number": "MF 106"}

The digest shows a later round whether it calls the step with the same arguments. A later round reads the JSON of the
result as the type in the return annotation.
"""

from __future__ import annotations

import inspect
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, get_type_hints

from mcp_functions.protocol.errors import DeveloperError, is_on_lambda
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.protocol.plain_values import NotJson, to_json
from mcp_functions.schemas.type_reader import read_type
from mcp_functions.seal.canonical_json import canonical_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.rounds.round import Round
    from mcp_functions.schemas.json_types import JsonType

DIGEST_BYTES = 16  # so that two lists of arguments never have one digest by chance
ADVICE = "annotate the type itself, without secrets or excluded fields"


def digest_arguments(args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    """Return the digest of a call's arguments; TypeError, ValueError or RecursionError if JSON cannot carry them."""
    # A later round may run in another process, where a set has another order. `to_record` may write sets as they are.
    arguments = to_record(_sort_sets([args, kwargs]))
    digest = canonical_digest(label=b"", value=arguments)
    return base64url(digest[:DIGEST_BYTES])


def _sort_sets(value: object) -> object:
    """Return a value with a sorted list for each set in it, also inside models and dataclasses."""
    if isinstance(value, set | frozenset):
        return sorted(map(_sort_sets, value), key=repr)  # members of two types do not compare
    if isinstance(value, dict):
        return {key: _sort_sets(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_sort_sets(member) for member in value]
    if hasattr(value, "model_dump"):
        # A warning would quote values in the log.
        return _sort_sets(value.model_dump(by_alias=True, warnings=False))
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _sort_sets(getattr(value, name)) for name in value.__dataclass_fields__}
    return value


def to_record(value: object) -> object:
    """Return a value as JSON: a value that a tool may return, or any other one that pydantic can write."""
    try:
        return to_json(value)
    except NotJson:
        from pydantic_core import to_jsonable_python

        return to_jsonable_python(value, by_alias=True)


def warn_of_loss(problem: str, advice: str, round_: Round) -> None:
    """Tell the author that later rounds do not get what this round got; on Lambda the log gets it as a warning.

    An error there would make the client repeat its request, and what the step did has happened already. Elsewhere it
    ends the round, with the advice: what the author can change. Only the advice may quote a value.
    """
    if not is_on_lambda():
        raise round_.failed(DeveloperError("{problem}: {advice}", problem=problem, advice=advice))
    import logging

    logging.getLogger("mcp_functions").warning(problem)


def read_return_type(function: Callable[..., Any]) -> JsonType | None:
    """Read the return annotation of a step's function; None if it names no type that JSON can be read as."""
    try:
        annotation = _return_annotation(_without_wrappers(function))
        return None if annotation in (None, Any, object) else read_type(annotation)
    except (TypeError, NameError, AttributeError):
        return None  # a name that only type checkers see, or a type that JSON cannot hold


def _return_annotation(function: Callable[..., Any]) -> Any:  # noqa: ANN401 - any expression
    """Return what the caller of a function gets, as its annotation says; None without an annotation."""
    if isinstance(function, type):
        return function  # the caller of a class gets an instance of it
    if not inspect.isroutine(function):
        function = type(function).__call__  # an object whose class defines `__call__`
    return get_type_hints(function, include_extras=True).get("return")


def _without_wrappers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function inside decorators and inside functools.partial."""
    if hasattr(function, "__wrapped__"):  # a decorator with functools.wraps has set it
        return _without_wrappers(function.__wrapped__)
    # functools.partial, and some decorators that are classes, keep the function as `func`. A Mock has every attribute,
    # but `dir` does not list them.
    inner = getattr(function, "func", None) if "func" in dir(function) else None
    return _without_wrappers(inner) if callable(inner) else function
