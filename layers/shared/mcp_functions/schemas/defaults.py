"""Defaults of parameters: each call gets a fresh one, and the schema has it in the form that a client would send."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.plain_values import to_json
from mcp_functions.schemas.parameters import MISSING, Parameter, copier

if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable


def read(declared: inspect.Parameter, annotation: Any) -> tuple[Parameter, Any]:  # noqa: ANN401 - an annotation is any value
    """Read the default of a parameter as pydantic does.

    Args:
        declared: the parameter as it stands in the signature.
        annotation: its resolved type hint.

    Returns:
        The parameter with its real default, and the annotation without what `Field` says besides the type.

    Raises:
        TypeError: there are two defaults, one cannot be copied, or `Field` has an option that no parameter can have.

    """
    parameter = Parameter(declared, declared.default)
    if parameter.default is ...:  # to pydantic: required
        parameter = parameter._replace(default=MISSING, is_filled=True)
    metadata = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    if any(map(_is_field, (parameter.default, *metadata))):
        from mcp_functions.schemas import pydantic_fields  # noqa: PLC0415 - who wrote Field has imported pydantic

        return pydantic_fields.read(parameter, annotation)
    if fresh := copier(parameter.default):
        parameter = parameter._replace(fresh=fresh, is_filled=True)
    return parameter, annotation


def published(default: Any, check: Callable[[Any], Any]) -> dict[str, Any]:  # noqa: ANN401 - a default is any value
    """Write the `default` of a schema in the form in which an argument would arrive; nothing if JSON cannot say it.

    Args:
        default: of a parameter.
        check: reads a value of the parameter's type, or raises ValueError.

    """
    try:
        value = to_json(default)
        dumps(value).encode()  # neither NaN, nor infinity, nor half of a surrogate pair
        if value != default:  # JSON has nothing like it: its form may be another one than that of arguments
            check(value)
    except ValueError:
        return {}
    return {"default": value}


def as_float(default: Any, check: Callable[[Any], Any]) -> Callable[[], float] | None:  # noqa: ANN401 - a default
    """Return what makes the float of `amount: float = 5`, or None for any other default; pydantic would leave the int.

    Args:
        default: of a parameter.
        check: reads a value of the parameter's type, or raises ValueError.

    """
    if type(default) is not int:
        return None
    try:
        value = check(default)
    except ValueError:
        return None
    return partial(float, default) if type(value) is float else None


def _is_field(item: object) -> bool:
    fields = sys.modules.get("pydantic.fields")
    return fields is not None and isinstance(item, fields.FieldInfo)
