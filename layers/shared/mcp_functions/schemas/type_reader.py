"""Reads a type annotation as a `JsonType`: a JSON Schema for clients, and a function that reads a client's values.

    Annotated[int, Between(1, 30), "How many nights"]

    schema     {"type": "integer", "minimum": 1, "maximum": 30, "description": "How many nights"}
    read(7)    7
    read(31)   ValueError: must be at most 30

The types of JSON, common classes and limits are read without pydantic, because its import takes most of a cold start.
pydantic reads every other type. A property test checks that both ways agree.
"""

from __future__ import annotations

from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from mcp_functions.schemas import json_types
from mcp_functions.schemas.json_types import NeedsPydantic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_functions.schemas.json_types import JsonType

UNIONS = (Union, UnionType)  # the origins of `Optional[int]` and of `int | None`


def read_type(annotation: object) -> JsonType:
    """Read an annotation.

    Args:
        annotation: a resolved type hint; a string inside `Annotated` is its description.

    Raises:
        TypeError: JSON has no such type.
    """
    try:
        return _read_without_pydantic(annotation)
    # A class that refers to itself ends in a RecursionError. A name that is not defined ends in a NameError; pydantic's
    # own error for it names the field too.
    except (NeedsPydantic, RecursionError, NameError):
        from mcp_functions.schemas import pydantic_types  # noqa: PLC0415 - imports pydantic

        type_ = pydantic_types.read_type(annotation)
    metadata = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return _described(type_, metadata)


def _read_without_pydantic(annotation: object) -> JsonType:
    """Read an annotation without pydantic.

    Raises:
        NeedsPydantic: only pydantic can read this annotation.
    """
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        return _read_annotated(inner, metadata)
    if annotation in (Any, object):
        return json_types.ANY
    if not isinstance(annotation, type) or annotation in (list, dict):
        return _read_generic(annotation)
    if annotation in json_types.SCALARS:
        return json_types.SCALARS[annotation]
    from mcp_functions.schemas import class_types  # noqa: PLC0415 - few functions have another class

    return class_types.read_class(annotation, _read_without_pydantic)


def _read_generic(annotation: object) -> JsonType:
    """Read a type that has arguments in brackets, or that may have some: `list` and `dict`."""
    # `list` and `dict` have no origin. Neither has a bare `Literal` or `Union`, which pydantic refuses.
    origin = annotation if annotation in (list, dict) else get_origin(annotation)
    args = get_args(annotation)
    if origin is Literal:
        return json_types.read_choice(args)
    if origin in UNIONS:
        return json_types.read_union(args, _read_without_pydantic)
    if origin is list:
        return json_types.read_array(args, _read_without_pydantic)
    has_other_keys = len(args) > 0 and args[0] is not str
    if origin is dict and not has_other_keys:
        return json_types.read_object(args, _read_without_pydantic)
    raise NeedsPydantic


def _read_annotated(inner: object, metadata: list[Any]) -> JsonType:
    """Read `Annotated[inner, *metadata]`: first the limits, then titles and formats, then the description."""
    if any(json_types.needs_pydantic(item) for item in metadata):
        raise NeedsPydantic
    limits = [item for item in metadata if _is_limit(item)]
    type_ = _read_limited(inner, limits) if limits else _read_without_pydantic(inner)
    for item in metadata:
        if json_types.is_keywords(item):
            type_ = item.add_to(type_)
    return _described(type_, metadata)


def _read_limited(inner: object, limits: list[object]) -> JsonType:
    from mcp_functions.schemas import annotations  # noqa: PLC0415 - few types have limits

    origin = get_origin(inner)
    if origin not in UNIONS:
        return annotations.add_limits(origin or inner, _read_without_pydantic(inner), limits)
    members = [member for member in get_args(inner) if member is not NoneType]
    if len(members) > 1:
        raise NeedsPydantic
    # `Annotated[int | None, Ge(1)]` is read as `Annotated[int, Ge(1)] | None`.
    limited: Any = Annotated[(members[0], *limits)]
    return json_types.read_union((limited, NoneType), _read_without_pydantic)


def _is_limit(item: object) -> bool:
    """Recognize `Between`, `Length` and what `annotated_types` has, without an import of either module."""
    is_group = hasattr(item, "__is_annotated_types_grouped_metadata__")
    return is_group or type(item).__module__.partition(".")[0] == "annotated_types"


def _described(type_: JsonType, metadata: Iterable[object]) -> JsonType:
    """Add the description, which is the first string in `Annotated`."""
    for item in metadata:
        if isinstance(item, str):
            return type_.with_keywords({"description": item})
    return type_
