"""Reads a type annotation as a `JsonType`: a JSON Schema for clients, and a function that reads a client's values.

The types of JSON, common classes and limits are read here, without pydantic, because its import takes most of a cold
start. pydantic reads every other type. A property test proves that both ways agree.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from mcp_functions.schemas import json_types
from mcp_functions.schemas.json_types import NeedsPydantic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_functions.schemas.json_types import JsonType

UNIONS = (Union, types.UnionType)


def read_type(annotation: object) -> JsonType:
    """Read an annotation.

    Args:
        annotation: a resolved type hint; a string inside `Annotated` is its description.

    Raises:
        TypeError: JSON has no such type.
    """
    try:
        return _read_without_pydantic(annotation)
    # RecursionError: a class refers to itself. NameError: a name is not defined, and pydantic's error has the field.
    except (NeedsPydantic, RecursionError, NameError):
        from mcp_functions.schemas import pydantic_types  # noqa: PLC0415 - imports pydantic

        type_ = pydantic_types.read_type(annotation)
    metadata = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return _described(type_, metadata)


def _read_without_pydantic(annotation: object) -> JsonType:
    """Read an annotation without pydantic.

    Raises:
        NeedsPydantic: it is none of those that are read here.
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
    origin = get_origin(annotation)
    args = get_args(annotation)
    if origin is Literal:
        return json_types.read_choice(args)
    if origin in UNIONS:
        return json_types.read_union(args, _read_without_pydantic)
    if annotation is list or origin is list:
        return json_types.read_array(args, _read_without_pydantic)
    if annotation is dict or (origin is dict and args[0] is str):
        return json_types.read_object(args, _read_without_pydantic)
    raise NeedsPydantic


def _read_annotated(inner: object, metadata: list[Any]) -> JsonType:
    if any(map(json_types.needs_pydantic, metadata)):
        raise NeedsPydantic
    limits = [item for item in metadata if _is_limit(item)]
    type_ = _read_limited(inner, limits) if limits else _read_without_pydantic(inner)
    for item in metadata:
        if hasattr(item, "add_to"):  # a `Keywords` of `annotations`
            type_ = item.add_to(type_)
    return _described(type_, metadata)


def _read_limited(inner: object, limits: list[object]) -> JsonType:
    from mcp_functions.schemas import annotations  # noqa: PLC0415 - few types have limits

    members = get_args(inner)
    if get_origin(inner) in UNIONS and type(None) in members:
        # `Annotated[int | None, Ge(1)]` limits the int, so it is read as `Annotated[int, Ge(1)] | None`.
        others: Any = Union.__getitem__(tuple(member for member in members if member is not type(None)))
        return _read_without_pydantic(Annotated[(others, *limits)] | None)
    return annotations.add_limits(get_origin(inner) or inner, _read_without_pydantic(inner), limits)


def _is_limit(item: object) -> bool:
    is_group = hasattr(item, "__is_annotated_types_grouped_metadata__")
    return is_group or type(item).__module__.partition(".")[0] == "annotated_types"


def _described(type_: JsonType, metadata: Iterable[object]) -> JsonType:
    """Add the description, which is the first string."""
    for item in metadata:
        if isinstance(item, str):
            return type_.with_keywords({"description": item})
    return type_
