"""Reads the return annotation of a handler, which says what its results hold.

    Annotation                                What a result holds
    Booking, list[int], dict[str, float] …    structured content, whose type becomes the `outputSchema`
    str, None, Any, or no annotation          text, or whatever the value turns out to be; no schema
    Image, list[Text | Image] …               content, the blocks of the specification; no schema
    Booking | InputRequiredResult             the same as Booking: the other member is a question, and no result

Content inside another value, as in `dict[str, Image]`, is refused.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Collection, Iterable, MutableSequence, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeGuard, Union, get_args, get_origin

from mcp_functions.protocol.plain_values import content_kind_of_type
from mcp_functions.schemas.type_reader import read_type

if TYPE_CHECKING:
    from mcp_functions.rounds.low_level import InputRequiredResult
    from mcp_functions.schemas.json_types import JsonType

LISTS = (list, tuple, Sequence, MutableSequence, Collection, Iterable)  # the origins of annotations for a list


def is_input_required(value: object) -> TypeGuard[InputRequiredResult]:
    """Tell whether a function returned an InputRequiredResult."""
    result_class = _input_required_class()
    return result_class is not None and isinstance(value, result_class)


def read_structured_type(annotation: object) -> JsonType | None:
    """Read the type of the structured content that a return annotation promises. Text and content promise none.

    Raises:
        TypeError: the type has no JSON Schema.
    """
    if annotation is None:
        return None
    question_class = _input_required_class()
    results = tuple(member for member in union_members(annotation) if member is not question_class)
    if not results or any(map(_is_unstructured, results)):
        return None
    if len(results) == 1:  # `Union` would refuse `-> [int]`, a mistake that `read_type` explains
        return read_type(results[0])
    return read_type(Union.__getitem__(results))


def _input_required_class() -> type[InputRequiredResult] | None:
    """Return InputRequiredResult if its module was imported; otherwise no function can return or name it."""
    low_level: Any = sys.modules.get("mcp_functions.rounds.low_level")
    return low_level.InputRequiredResult if low_level else None


def returns_content_list(annotation: object) -> bool:
    """Tell whether a list that the function returns is a list of content: `list[Image]`, `Text | list[str | Text]`.

    Raises:
        TypeError: content is inside another value, as in `dict[str, Image]`, where no client would find it.
    """
    members = _members(annotation)
    lists = [member for member in members if get_origin(member) in LISTS]
    content_lists = [member for member in lists if _contains_content(member)]
    for member in members:
        parts = get_args(member) if member in content_lists else (member,)
        if any(map(_nests_content, parts)):
            message = f"-> {annotation}: content is returned by itself or in a list, not inside another value"
            raise TypeError(message)
    return bool(lists) and content_lists == lists


def union_members(annotation: object) -> tuple[Any, ...]:
    """Return the members of a union; of any other annotation, the annotation."""
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def _is_unstructured(annotation: object) -> bool:
    """Tell whether a type promises no structured content: Any and a bare list may hold text, content or None."""
    inner = _strip(annotation)
    if (get_origin(inner) or inner) in (list, tuple) and not get_args(inner):
        return True
    return annotation in (str, type(None), Any, object) or _contains_content(annotation)


def _contains_content(annotation: object) -> bool:
    """Tell whether a type is a class of content, or has one inside its brackets."""
    inner = _strip(annotation)
    if isinstance(inner, type):
        return bool(content_kind_of_type(inner))
    return get_origin(inner) is not Literal and any(map(_contains_content, get_args(inner)))


def _nests_content(annotation: object) -> bool:
    """Tell whether content is inside another value, as in `dict[str, Image]`; content itself, or a union, is not."""
    return any(not isinstance(member, type) and _contains_content(member) for member in _members(annotation))


def _members(annotation: object) -> list[object]:
    """Return the members of a union, or the one annotation, without `Annotated` and aliases."""
    return [_strip(member) for member in union_members(_strip(annotation))]


def _strip(annotation: object) -> object:
    """Return the type without `Annotated` and its metadata, or the type for which an alias (`type X = …`) stands."""
    annotation = getattr(annotation, "__value__", annotation)
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
