"""Reads the return annotation of a handler, which says what its results contain.

    Annotation                                What a result contains
    Booking, list[int], dict[str, float] …    structured content: its type becomes the `outputSchema`
    str, None, Any, or no annotation          text, or whatever the returned value is; no schema
    Image, list[Text | Image] …               content: the blocks of the specification; no schema
    Booking | None, Image | Booking …         text, content or a Booking, which its type writes; no schema
    Booking | InputRequiredResult             the same as for Booking, because InputRequiredResult is a question

Content inside another value, as in `dict[str, Image]`, is an error: no client would find it there.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, MutableSequence, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeGuard, Union, get_args, get_origin

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.plain_values import BYTES, NotJson, content_kind_of_type
from mcp_functions.schemas.json_types import ANY
from mcp_functions.schemas.type_reader import UNIONS, read_type

if TYPE_CHECKING:
    from mcp_functions.rounds.low_level import InputRequiredResult
    from mcp_functions.schemas.json_types import JsonType

WITHOUT_TYPE = (NoneType, str, *BYTES)  # text and bytes, which no type describes further
LISTS = (list, tuple, Sequence, MutableSequence, Collection, Iterable)  # the origins of lists


def read_structured_type(annotation: object) -> JsonType | None:
    """Read the type of the structured content, or None for text or content; TypeError if it has no JSON Schema."""
    question_class = _input_required_class()
    results = tuple(member for member in union_members(annotation) if member is not question_class)
    if not results or any(_is_unstructured(result) for result in results):
        return None
    return read_type(make_union(results))


def read_plain_type(annotation: object) -> JsonType:
    """Read the type of each value that is neither text, bytes nor content: User, of `str | User | list[Image | User]`.

    Raises:
        TypeError: the type has no JSON Schema.
    """
    members = [part for member in _plain_members(annotation) for part in _parts_without_content(member)]
    plain = tuple(member for member in members if member not in (None, *WITHOUT_TYPE, _input_required_class()))
    is_open = any(member in (Any, object, ..., *LISTS) for member in plain)
    return ANY if is_open or not plain else read_type(make_union(plain))


def write_returned(handler: str, type_: JsonType, value: object) -> Any:  # noqa: ANN401 - JSON
    """Write what a handler returned, with what its type declares and nothing more.

    Raises:
        NotJson: JSON cannot hold the value.
        DeveloperError: the value does not have the type.
    """
    try:
        return type_.write(value)
    except NotJson:
        raise
    except ValueError as error:
        rule = "{name} returned something else than its signature promises: it {problem}"
        # `from None`, because the exception of a validator may quote the value, which the log must not contain.
        raise DeveloperError(rule, name=handler, problem=error) from None


def returns_content_list(annotation: object) -> bool:
    """Tell whether every list that the function returns is a list of content: `list[Image]`, `Text | list[Text]`.

    Raises:
        TypeError: content is inside another value, as in `dict[str, Image]`.
    """
    members = _plain_members(annotation)
    lists = [member for member in members if get_origin(member) in LISTS]
    for member in members:
        parts = get_args(member) if member in lists else (member,)
        if any(_nests_content(part) for part in parts):
            raise TypeError(f"-> {annotation}: content is returned by itself or in a list, not inside another value")
    return bool(lists) and all(_contains_content(each) for each in lists)


def _is_unstructured(annotation: object) -> bool:
    """Tell whether a type promises no structured content."""
    if annotation in (None, NoneType, str, Any, object):
        return True
    plain = _without_annotated(annotation)
    is_list = plain in (list, tuple) or get_origin(plain) in (list, tuple)
    is_bare_list = is_list and not get_args(plain)  # its items may be content
    return is_bare_list or _contains_content(annotation)


def _parts_without_content(annotation: object) -> list[object]:
    """Return a type that is no content; of a list with content in it, the types of its items that are none."""
    if not _contains_content(annotation):
        return [annotation]
    return [part for arg in get_args(annotation) for part in _plain_members(arg) if not _contains_content(part)]


def _contains_content(annotation: object) -> bool:
    """Tell whether a type is a class of content, or has one in its brackets: `Image`, `list[Image]`."""
    plain = _without_annotated(annotation)
    if isinstance(plain, type):
        return bool(content_kind_of_type(plain))
    if get_origin(plain) is Literal:  # its brackets hold values, not types
        return False
    return any(_contains_content(part) for part in get_args(plain))


def _nests_content(annotation: object) -> bool:
    """Tell whether content is inside another value: in `dict[str, Image]` it is, in `Image | Text` it is not."""
    with_brackets = [member for member in _plain_members(annotation) if get_args(member)]
    return any(_contains_content(member) for member in with_brackets)


def _plain_members(annotation: object) -> list[object]:
    """Return the members of a union, or the annotation itself, without `Annotated` and aliases."""
    return [_without_annotated(member) for member in union_members(_without_annotated(annotation))]


def _without_annotated(annotation: object) -> object:
    """Return X for `Annotated[X, …]` and for an alias (`type Alias = X`); otherwise the annotation itself."""
    annotation = getattr(annotation, "__value__", annotation)  # that of an alias is its type
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def union_members(annotation: object) -> tuple[Any, ...]:
    """Return the members of a union. Any other annotation is its own only member."""
    return get_args(annotation) if get_origin(annotation) in UNIONS else (annotation,)


def make_union(members: tuple[Any, ...]) -> object:
    """Make the type that has these members: `int | str` of int and str, and `int` of int alone."""
    if len(members) == 1:  # `Union` would refuse `-> [int]` without the words of `read_type`
        return members[0]
    union: object = Union.__getitem__(members)  # `Union[members]`, for type checkers
    return union


def is_input_required(value: object) -> TypeGuard[InputRequiredResult]:
    """Tell whether a function returned an InputRequiredResult."""
    result_class = _input_required_class()
    return result_class is not None and isinstance(value, result_class)


def _input_required_class() -> type[InputRequiredResult] | None:
    """Return InputRequiredResult; None if nothing has imported its module, so that no function can return one."""
    low_level: Any = sys.modules.get("mcp_functions.rounds.low_level")
    return low_level.InputRequiredResult if low_level else None
