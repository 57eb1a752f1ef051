"""A parameter of an author's function: its name on the wire, and its default, which each call gets as a new copy."""

from __future__ import annotations

import sys
from copy import deepcopy
from functools import partial
from textwrap import dedent
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.plain_values import to_json
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

MISSING: Any = ...  # no default: `...` means required, as to pydantic
UNNAMED = "every parameter needs a name (no *args, no /) and a type, which the client is told"


class Header(NamedTuple):
    """Marks an argument that clients repeat in the header `Mcp-Param-<name>`: `Annotated[str, Header("Region")]`."""

    name: str


class Parameter(NamedTuple):
    """A parameter of an author's function before `*`."""

    name: str  # the name in the function
    default: Any  # the default; MISSING if there is none, or if only `make_default` knows it
    # Makes the default for one call; None if there is none, or if Python's own default may be used.
    make_default: Callable[[], Any] | None = None
    alias: str | None = None  # the name on the wire, if `Field` gives one
    title: str | None = None  # the title for people, if `Field` gives one

    @property
    def required(self) -> bool:
        """Whether the parameter has no default."""
        return self.default is MISSING and self.make_default is None


def to_camel_case(name: str) -> str:
    """Write `work_item_id` as `workItemId`."""
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def docstring(item: object) -> str | None:
    """Return a docstring without its indentation, as `inspect` does, whose import takes 6 ms of a cold start."""
    if item.__doc__ is None:
        return None
    first, _, others = item.__doc__.expandtabs().partition("\n")
    return f"{first.lstrip()}\n{dedent(others)}".strip("\n")


def read_parameter(declared: Parameter, annotation: object) -> tuple[Parameter, object]:
    """Read the default of a parameter as pydantic does.

    Args:
        declared: the parameter as the signature has it.
        annotation: the resolved type hint of the parameter.

    Returns:
        The parameter with its default, and the annotation of its type, without the options of `Field`.

    Raises:
        TypeError: there are two defaults, one cannot be copied, or `Field` has an option that no parameter can have.
    """
    metadata = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    if any(map(_is_field, (declared.default, *metadata))):
        from mcp_functions.schemas import pydantic_fields  # noqa: PLC0415 - the author of a Field has imported pydantic

        return pydantic_fields.read_field(declared, annotation)
    return declared._replace(make_default=copier(declared.default)), annotation


def published_default(default: object, read: Callable[[object], object]) -> dict[str, Any]:
    """Return the keyword `default` of a schema, with a value as clients send it; {} if JSON has no such value."""
    try:
        value = to_json(default)
        dumps(value).encode()  # it raises for NaN, infinity and half of a surrogate pair
        if value != default:  # the JSON of a result may not be what an argument of this type accepts
            read(value)
    except ValueError:
        return {}
    return {"default": value}


def copier(default: object) -> Callable[[], Any] | None:
    """Return a function that copies a default for one call; None if no call can change the default.

    Raises:
        TypeError: the default is mutable and cannot be copied.
    """
    if _is_constant(default):
        return None
    try:
        deepcopy(default)
    except Exception as error:
        message = f"its default cannot be copied for each call: {error}"
        raise TypeError(message) from error
    return partial(deepcopy, default)


def _is_constant(default: object) -> bool:
    """Tell whether no call can change a value: it has a hash, and is no record, whose hash may leave out its fields."""
    is_record = hasattr(type(default), "__dataclass_fields__") or hasattr(type(default), "model_fields")
    try:
        hash(default)
    except TypeError:
        return False
    return not is_record


def _is_field(item: object) -> bool:
    fields = sys.modules.get("pydantic.fields")  # without this module, the author cannot have made a `Field`
    return fields is not None and isinstance(item, fields.FieldInfo)
