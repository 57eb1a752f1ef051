"""Items of `Annotated` that add keywords to a schema: limits, titles and formats.

`type_reader` applies them, and pydantic too: in a model, or beside its own `Field`. The limits of `annotated_types` are
read here as well, without their module, whose import would cost too much.
"""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING, Any

from mcp_functions.schemas.json_types import JsonType, NeedsPydantic
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema

# A loose pattern for each format: it refuses obvious mistakes.
FORMATS = {"email": r"[^@\s]+@[^@\s]+", "uri": r"[A-Za-z][A-Za-z0-9+.-]*:\S+"}
NULL = {"type": "null"}


class Limit(NamedTuple):
    """A kind of limit."""

    keyword: str  # the keyword in a schema
    is_within: Callable[[Any, Any], bool]  # compares a value with the limit
    words: str  # the comparison in an error message


# The kinds of limits, by the attribute of an annotation that has the limit.
NUMBERS = {
    "ge": Limit("minimum", operator.ge, "at least"),
    "gt": Limit("exclusiveMinimum", operator.gt, "more than"),
    "le": Limit("maximum", operator.le, "at most"),
    "lt": Limit("exclusiveMaximum", operator.lt, "less than"),
}
LENGTHS = {
    "min_length": Limit("min", operator.ge, "at least"),
    "max_length": Limit("max", operator.le, "at most"),
}
# For a type that has a length: the end of the keyword, as in `minLength`, and the unit in an error message.
COUNTED: dict[object, tuple[str, str]] = {
    str: ("Length", "characters"),
    list: ("Items", "items"),
    dict: ("Properties", "members"),
}


class Between:
    """Limits a number, both ends included: `Annotated[int, Between(1, 30)]`. `None` is no limit."""

    __is_annotated_types_grouped_metadata__ = True  # pydantic reads the limits in `__iter__`

    def __init__(self, least: float | None, most: float | None) -> None:
        """Limit a number, under the names of `annotated_types`."""
        self.ge = least
        self.le = most

    def __iter__(self) -> Iterator[object]:
        """List the limits for pydantic, which has imported `annotated_types`."""
        from annotated_types import Interval  # noqa: PLC0415 - only pydantic needs it

        return iter(Interval(ge=self.ge, le=self.le))


class Length:
    """Limits the characters of a string or the items of a list: `Annotated[str, Length(3, 200)]`."""

    __is_annotated_types_grouped_metadata__ = True

    def __init__(self, least: int | None, most: int | None) -> None:
        """Limit a length, under the names of `annotated_types`."""
        self.min_length = least
        self.max_length = most

    def __iter__(self) -> Iterator[object]:
        """List the limits for pydantic, which has imported `annotated_types`."""
        from annotated_types import Len  # noqa: PLC0415 - only pydantic needs it

        return iter(Len(self.min_length or 0, self.max_length))


class Keywords:
    """Keywords that an annotation adds to the schema of a type."""

    def add_to(self, type_: JsonType) -> JsonType:
        """Add the keywords to the schema of a type, and their check to its reader."""
        return JsonType(self.extend(type_.schema), read=lambda value: self.check(type_.read(value)))

    def extend(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Add the keywords to a schema; in a union, to each member except null."""
        if "anyOf" not in schema:
            return self.extend_member(schema)
        members = [member if member == NULL else self.extend(member) for member in schema["anyOf"]]
        return {**schema, "anyOf": members}

    def extend_member(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Add the keywords to a schema that is no union."""
        raise NotImplementedError

    def check(self, value: object) -> object:
        """Return a value that the keywords allow.

        Raises:
            ValueError: the keywords do not allow the value.
        """
        return value

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Add the keywords for pydantic, which keeps classes under `$defs` and gives them titles."""

        def inline(schema: dict[str, Any]) -> dict[str, Any]:
            if "anyOf" in schema:
                schema = {**schema, "anyOf": [inline(member) for member in schema["anyOf"]]}
            if "$ref" not in schema:
                return schema
            return {key: value for key, value in handler.resolve_ref_schema(schema).items() if key != "title"}

        return self.extend(inline(handler(core_schema)))


class Title(Keywords):
    """Names a field or an argument for people: `Annotated[int, Title("Work item")]`."""

    def __init__(self, title: str) -> None:
        """Set the title."""
        self._title = title

    def extend(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Add the title beside the description, in a union too."""
        return {**schema, "title": self._title}


class Titles(Keywords):
    """Gives titles to the choices of a Literal or Enum: `Annotated[Literal["a", "b"], Titles("One", "Two")]`."""

    def __init__(self, *titles: str) -> None:
        """Set one title for each choice, in their order."""
        self._titles = titles

    def extend_member(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Replace `enum` by `oneOf` with `const` and `title`.

        Raises:
            TypeError: there are more or fewer titles than choices.
        """
        choices = schema.get("enum", [schema["const"]] if "const" in schema else [])
        if len(choices) != len(self._titles):
            message = f"Titles has {len(self._titles)} titles for {len(choices)} choices"
            raise TypeError(message)
        pairs = zip(choices, self._titles, strict=True)
        others = {key: value for key, value in schema.items() if key not in ("enum", "const")}
        return {**others, "type": "string", "oneOf": [{"const": choice, "title": title} for choice, title in pairs]}


class Format(Keywords):
    """Sets the format of a string: `Annotated[str, Format("email")]` or `Format("uri")`."""

    def __init__(self, name: str) -> None:
        """Set the format.

        Raises:
            TypeError: the name is neither "email" nor "uri". (A `date` and a `datetime` have their own formats.)
        """
        if name not in FORMATS:
            message = f"Format({name!r}): the formats are {' and '.join(FORMATS)}"
            raise TypeError(message)
        self._name = name

    def check(self, value: object) -> object:
        """Return a value that is no string, or has the format.

        Raises:
            ValueError: the string does not have the format.
        """
        if isinstance(value, str) and not re.fullmatch(FORMATS[self._name], value):
            message = f"must be a valid {self._name}"
            raise ValueError(message)
        return value

    def extend_member(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Write the format."""
        return {**schema, "format": self._name}

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check the format for pydantic."""
        from pydantic_core import core_schema  # noqa: PLC0415 - pydantic calls this method

        return core_schema.no_info_after_validator_function(self.check, handler(source))


def add_limits(cls: object, type_: JsonType, limits: Iterable[object]) -> JsonType:
    """Add limits to the type that was read from a class.

    Raises:
        NeedsPydantic: only pydantic reads one of the limits.
    """
    for item in limits:
        named = {name: getattr(item, name, None) for name in (*NUMBERS, *LENGTHS)}
        found = {name: limit for name, limit in named.items() if limit is not None}
        if not found:
            raise NeedsPydantic
        for name, limit in found.items():
            type_ = _add_limit(cls, type_, name, limit)
    return type_


def _add_limit(cls: object, type_: JsonType, name: str, limit: float) -> JsonType:
    if name in NUMBERS and cls in (int, float):
        number = NUMBERS[name]
        reason = f"must be {number.words} {limit}"
        return _limited(type_, number.keyword, limit, lambda value: number.is_within(value, limit), reason)
    if name in LENGTHS and cls in COUNTED:
        length = LENGTHS[name]
        suffix, unit = COUNTED[cls]
        reason = f"must have {length.words} {limit} {unit}"
        return _limited(
            type_, length.keyword + suffix, limit, lambda value: length.is_within(len(value), limit), reason
        )
    raise NeedsPydantic


def _limited(type_: JsonType, keyword: str, limit: float, is_within: Callable[[Any], bool], reason: str) -> JsonType:
    if keyword in type_.schema:  # two limits of one kind: pydantic has the rule for them
        raise NeedsPydantic

    def read(value: object) -> object:
        result = type_.read(value)
        if not is_within(result):
            raise ValueError(reason)
        return result

    return JsonType({**type_.schema, keyword: limit}, read)
