"""A parameter of an author's function: its name on the wire, and its default, which each call gets as a new copy."""

from __future__ import annotations

import inspect
import sys
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args, get_origin

from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.plain_values import to_json

if TYPE_CHECKING:
    from collections.abc import Callable

MISSING: Any = inspect.Parameter.empty  # no default


class Header(NamedTuple):
    """Marks an argument that clients repeat in the header `Mcp-Param-<name>`: `Annotated[str, Header("Region")]`."""

    name: str


class Parameter(NamedTuple):
    """A parameter that a caller may fill in.

    Attributes:
        declared: the parameter in the signature.
        default: its default; MISSING if it has none, or if `make_default` makes it.
        replaces_default: whether a direct call needs `make_default`, because the value after `=` is not the default.
        make_default: makes the default for one call.
        alias: its name on the wire, if `Field` gives one.
        title: its title for people, if `Field` gives one.

    """

    declared: inspect.Parameter
    default: Any
    replaces_default: bool = False
    make_default: Callable[[], Any] | None = None
    alias: str | None = None
    title: str | None = None

    @property
    def name(self) -> str:
        """Its name in the function."""
        return self.declared.name

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is MISSING and self.make_default is None


def to_camel_case(name: str) -> str:
    """Write `work_item_id` as `workItemId`."""
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def read_parameter(declared: inspect.Parameter, annotation: object) -> tuple[Parameter, object]:
    """Read the default of a parameter as pydantic does.

    Args:
        declared: the parameter in the signature.
        annotation: its resolved type hint.

    Returns:
        The parameter with its default, and the annotation of its type, without the options of `Field`.

    Raises:
        TypeError: there are two defaults, one cannot be copied, or `Field` has an option that no parameter can have.

    """
    default = MISSING if declared.default is ... else declared.default  # to pydantic, `...` means required
    metadata = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    if not any(map(_is_field, (default, *metadata))):
        make_default = copier(default)
        replaces_default = make_default is not None or declared.default is ...
        return Parameter(declared, default, replaces_default, make_default), annotation
    from mcp_functions.schemas import pydantic_fields  # noqa: PLC0415 - the author of a Field has imported pydantic

    return pydantic_fields.read_field(declared, annotation, default)


def published_default(default: object, read: Callable[[object], object]) -> dict[str, Any]:
    """Write the `default` of a schema in the form of an argument; nothing if JSON has no such value."""
    try:
        value = to_json(default)
        dumps(value).encode()  # refuses NaN, infinity and half of a surrogate pair
        if value != default:  # arguments may have another form in JSON than results have
            read(value)
    except ValueError:
        return {}
    return {"default": value}


def float_default(default: object, read: Callable[[object], object]) -> Callable[[], float] | None:
    """Return a function that makes a float for `amount: float = 5`; None if the default needs no change."""
    if type(default) is not int:
        return None
    try:
        is_float = type(read(default)) is float
    except ValueError:
        return None
    return partial(float, default) if is_float else None


def copier(default: object) -> Callable[[], Any] | None:
    """Return a function that copies a default for one call; None if no call can change the default.

    Raises:
        TypeError: the default is mutable and cannot be copied.

    """
    is_record = hasattr(type(default), "__dataclass_fields__") or hasattr(type(default), "model_fields")
    if _is_hashable(default) and not is_record:
        return None
    try:
        deepcopy(default)
    except Exception as error:
        message = f"its default cannot be copied for each call: {error}"
        raise TypeError(message) from error
    return partial(deepcopy, default)


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _is_field(item: object) -> bool:
    fields = sys.modules.get("pydantic.fields")
    return fields is not None and isinstance(item, fields.FieldInfo)
