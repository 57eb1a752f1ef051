"""A parameter of an author's function: its name on the wire, and its default, which each call gets as a new copy."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.plain_values import to_json
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.protocol.wire_types import Schema
    from mcp_functions.schemas.json_types import JsonType

MISSING: Any = ...  # a default or a type that an author did not write, as in `Field(...)`
# The error text for a parameter without a name or without a type.
PARAMETER_RULE = "every parameter needs a name (no *args, no /) and a type, which the client is told"


class Parameter(NamedTuple):
    """A parameter of an author's function before `*`.

    Attributes:
        default: the default that clients see; MISSING if there is none, or if a `default_factory` makes it.
        make_default: makes the value that a call leaves out. None if the parameter is required, or if all calls may
            share the default: Python then uses the one in the signature.
        annotation: the type, without the options of `Field`; MISSING if the author wrote none.
        alias: the name on the wire, if `Field` gives one.
        title: the title for people, if `Field` gives one.
    """

    name: str
    default: Any
    make_default: Callable[[], Any] | None = None
    annotation: Any = MISSING
    alias: str | None = None
    title: str | None = None

    @property
    def required(self) -> bool:
        """Whether the parameter has no default."""
        return self.default is MISSING and self.make_default is None


def to_camel_case(name: str) -> str:
    """Write `work_item_id` as `workItemId`."""
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def docstring(item: object) -> str | None:
    """Return a docstring without its indentation, or None: `inspect.cleandoc` would cost 6 ms of a cold start."""
    if item.__doc__ is None:
        return None
    first_line, _, other_lines = item.__doc__.expandtabs().partition("\n")
    return f"{first_line.lstrip()}\n{dedent(other_lines)}".strip("\n")


def published_default(default: object, type_: JsonType) -> Schema:
    """Return the keyword `default` of a schema; {} if no client can send the default, as the None of `int = None`."""
    try:
        value = to_json(default)
        # Three checks: JSON has no NaN and no half of a surrogate pair, and a secret is written as asterisks.
        dumps(value).encode()
        type_.read(value)
        type_.check_recordable()
    except (TypeError, ValueError):
        return {}
    return {"default": value}


def default_maker(default: object) -> Callable[[], Any] | None:
    """Return a function that copies a default for one call; None if no call can change it, or if it is MISSING.

    Raise a TypeError if the default is mutable and cannot be copied.
    """
    if _is_constant(default):
        return None
    try:
        deepcopy(default)
    except Exception as error:
        raise TypeError(f"its default cannot be copied for each call: {error}") from error
    return partial(deepcopy, default)


def _is_constant(value: object) -> bool:
    """Tell whether no call can change a value, so that all calls may share it.

    Python's mutable types have no hash. A dataclass or a model may have one although its fields can change.
    """
    cls = type(value)
    if hasattr(cls, "__dataclass_fields__") or hasattr(cls, "model_fields"):
        return False
    try:
        hash(value)
    except TypeError:
        return False
    return True
