"""Reads a type annotation as a `JsonType`: a JSON Schema for clients, and a function that reads a client's values.

    Annotated[int, Between(1, 30), "How many nights"]

    schema     {"type": "integer", "minimum": 1, "maximum": 30, "description": "How many nights"}
    read(7)    7
    read(31)   ValueError: must be at most 30

The types of JSON, common classes and limits are read without pydantic, because its import takes most of a cold start.
pydantic reads every other type. A property test checks that both ways agree.
"""

from __future__ import annotations

from functools import lru_cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from mcp_functions.schemas import json_types
from mcp_functions.schemas.json_types import ANY, SCALARS, NeedsPydantic, is_keywords, needs_pydantic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_functions.schemas.json_types import JsonType

PLAIN_TYPES = {**SCALARS, Any: ANY, object: ANY, list: json_types.array_type(ANY), dict: json_types.object_type(ANY)}
UNIONS = (Union, UnionType)  # the origins of `Optional[int]` and of `int | None`


def read_type(annotation: object) -> JsonType:
    """Read a resolved type hint, whose description is a string in `Annotated`; TypeError if JSON has no such type."""
    # Other types are read anew: a cache would confuse Literal["a", "b"] with Literal["b", "a"], because they are equal.
    return _read_class(annotation) if isinstance(annotation, type) else _read(annotation)


@lru_cache(maxsize=256)
def _read_class(cls: type) -> JsonType:
    """Read a class once: every round asks with the same classes, and pydantic takes 0.3 ms and more to read one."""
    return _read(cls)


def _read(annotation: object) -> JsonType:
    try:
        return read_without_pydantic(annotation)
    # A class that refers to itself ends in a RecursionError. pydantic's own error for an unknown name tells the field.
    except (NeedsPydantic, RecursionError, NameError):
        from mcp_functions.schemas import pydantic_types

        type_ = pydantic_types.read_type(annotation)
        metadata = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
        return _described(type_, metadata)


def read_without_pydantic(annotation: object) -> JsonType:
    """Read an annotation without pydantic, or raise NeedsPydantic if only pydantic can."""
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        return _read_annotated(inner, metadata)
    if not isinstance(annotation, type):
        return _read_with_brackets(get_origin(annotation), get_args(annotation))
    if annotation in PLAIN_TYPES:
        return PLAIN_TYPES[annotation]
    from mcp_functions.schemas import class_types

    return class_types.read_class(annotation, read_without_pydantic)


def _read_with_brackets(origin: object, args: tuple[Any, ...]) -> JsonType:
    """Read a type such as `list[int]`, whose origin is `list`; a union counts as one."""
    if origin is Literal:
        return json_types.choice_type(args)
    if origin in UNIONS:
        return json_types.union_type([read_without_pydantic(arg) for arg in args])
    if origin in PLAIN_TYPES and not args:  # `typing.List`, for example, is `list`
        return PLAIN_TYPES[origin]
    if origin is list:
        return json_types.array_type(read_without_pydantic(args[0]))
    if origin is dict and args[0] is str:
        return json_types.object_type(read_without_pydantic(args[1]))
    raise NeedsPydantic


def _read_annotated(inner: object, metadata: list[Any]) -> JsonType:
    """Read `Annotated[inner, *metadata]`: first the limits, then titles and formats, then the description."""
    if any(needs_pydantic(item) for item in metadata):
        raise NeedsPydantic
    type_ = read_without_pydantic(inner)
    for item in metadata:
        if _is_limit(item):
            from mcp_functions.schemas import annotations

            type_ = annotations.add_limit(type_, item)
    for item in metadata:
        if is_keywords(item):
            type_ = type_.with_schema(item.add_keywords(type_.schema))
    return _described(type_, metadata)


def _is_limit(item: object) -> bool:
    """Recognize `Between`, `Length` and what `annotated_types` has, without an import of either module."""
    is_group = hasattr(item, "__is_annotated_types_grouped_metadata__")
    return is_group or type(item).__module__.partition(".")[0] == "annotated_types"


def _described(type_: JsonType, metadata: Sequence[object]) -> JsonType:
    """Add the description, which is the first string in `Annotated`."""
    for item in metadata:
        if isinstance(item, str):
            return type_.with_keywords({"description": item})
    return type_
