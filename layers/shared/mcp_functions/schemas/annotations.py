"""Items of `Annotated` that add keywords to a schema: limits, titles and formats.

    int, Between(1, 30)             {"type": "integer", "minimum": 1, "maximum": 30}
    str, Title("Your name")         {"type": "string", "title": "Your name"}
    Literal["a"], Titles("One")     {"type": "string", "oneOf": [{"const": "a", "title": "One"}]}
    str, Format("email")            {"type": "string", "format": "email"}

Each item works in two ways:

    without pydantic                             `type_reader` calls `add_limit`, or `add_keywords`
    inside a pydantic model, beside a `Field`    pydantic calls the item's `__iter__`, or its `__get_pydantic_…`
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from mcp_functions.schemas.checking import LIMITS
from mcp_functions.schemas.json_types import NULL, NeedsPydantic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

    from mcp_functions.protocol.wire_types import Schema
    from mcp_functions.schemas.json_types import JsonType


# ---- Limits: our own, and those of `annotated_types`, whose import would cost too much

# Keywords of types that LIMITS is not about: a Literal or an Enum, a date, a dataclass or a TypedDict.
WITHOUT_LIMITS = {"enum", "format", "properties"}


class Between:
    """Limits a number, both ends included: `Annotated[int, Between(1, 30)]`. `None` is no limit."""

    __is_annotated_types_grouped_metadata__ = True  # pydantic reads the limits in `__iter__`

    def __init__(self, least: float | None, most: float | None) -> None:
        """Set the limits, under the names that `annotated_types` has for them (see LIMITS)."""
        self.ge = least
        self.le = most

    def __iter__(self) -> Iterator[object]:
        """List the limits for pydantic, which has imported `annotated_types`."""
        from annotated_types import Interval

        return iter(Interval(ge=self.ge, le=self.le))


class Length:
    """Limits the characters of a string or the items of a list: `Annotated[str, Length(3, 200)]`."""

    __is_annotated_types_grouped_metadata__ = True

    def __init__(self, least: int | None, most: int | None) -> None:
        """Set the limits, under the names that `annotated_types` has for them (see LIMITS)."""
        self.min_length = least
        self.max_length = most

    def __iter__(self) -> Iterator[object]:
        """List the limits for pydantic, which has imported `annotated_types`."""
        from annotated_types import Len

        return iter(Len(self.min_length or 0, self.max_length))


def add_limit(type_: JsonType, item: object) -> JsonType:
    """Add the limits of an item of `Annotated` to a type; the None of `int | None` has no limit.

    Raise NeedsPydantic if LIMITS does not have this limit for the type, or the type has such a limit already.
    """
    schemas = [member for member in type_.schema.get("anyOf", [type_.schema]) if member != NULL]
    if len(schemas) != 1 or schemas[0].keys() & WITHOUT_LIMITS:
        raise NeedsPydantic
    limits = LIMITS.get(str(schemas[0].get("type")), {})
    bounds = {limit.keyword: getattr(item, name, None) for name, limit in limits.items()}
    keywords = {keyword: bound for keyword, bound in bounds.items() if bound is not None}
    if not keywords or schemas[0].keys() & keywords.keys():
        raise NeedsPydantic
    return type_.with_schema(_change_members(type_.schema, lambda schema: {**schema, **cast("Schema", keywords)}))


# ---- Titles and formats


class Keywords:
    """Adds keywords to a schema. A subclass overrides `add_keywords`."""

    def add_keywords(self, schema: Schema) -> Schema:
        """Return the schema with the keywords."""
        raise NotImplementedError

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Add the keywords to the schema that pydantic makes; pydantic calls this method."""
        schema = _without_references(handler(core_schema), handler)
        return cast("JsonSchemaValue", self.add_keywords(cast("Schema", schema)))


def _without_references(schema: JsonSchemaValue, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
    """Replace each `$ref` with its definition, because pydantic keeps an Enum under `$defs`, where it has a title."""
    if "anyOf" in schema:
        schema = {**schema, "anyOf": [_without_references(member, handler) for member in schema["anyOf"]]}
    if "$ref" not in schema:
        return schema
    definition = handler.resolve_ref_schema(schema).copy()
    definition.pop("title", None)
    return definition


def _change_members(schema: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """Change each member of a union except null. Any other schema is changed itself."""
    if "anyOf" not in schema:
        return change(schema)
    members = [member if member == NULL else _change_members(member, change) for member in schema["anyOf"]]
    return {**schema, "anyOf": members}


class Title(Keywords):
    """Names a field or an argument for people: `Annotated[int, Title("Work item")]`."""

    def __init__(self, title: str) -> None:
        """Set the title."""
        self._title = title

    def add_keywords(self, schema: Schema) -> Schema:
        """Add the title. A union has one title, not one for each member."""
        return {**schema, "title": self._title}


class Titles(Keywords):
    """Gives titles to the choices of a Literal or Enum: `Annotated[Literal["a", "b"], Titles("One", "Two")]`."""

    def __init__(self, *titles: str) -> None:
        """Set one title for each choice, in their order."""
        self._titles = titles

    def add_keywords(self, schema: Schema) -> Schema:
        """Replace `enum` by `oneOf` with `const` and `title`; raise a TypeError for another number of choices."""
        return _change_members(schema, self._add_titles)

    def _add_titles(self, schema: Schema) -> Schema:
        others = schema.copy()
        choices = others.pop("enum", [])
        if "const" in others:
            choices = [others.pop("const")]
        if len(choices) != len(self._titles):
            raise TypeError(f"Titles has {len(self._titles)} titles for {len(choices)} choices")
        pairs = zip(choices, self._titles, strict=True)
        return {**others, "oneOf": [{"const": choice, "title": title} for choice, title in pairs]}


FORMATS = ("email", "uri")


class Format(Keywords):
    """Sets the format of a string: `Annotated[str, Format("email")]` or `Format("uri")`."""

    def __init__(self, name: str) -> None:
        """Set the format, "email" or "uri"; `date` and `datetime` have their own. Another one raises a TypeError."""
        if name not in FORMATS:
            raise TypeError(f"Format({name!r}): the formats are {' and '.join(FORMATS)}")
        self._name = name

    def add_keywords(self, schema: Schema) -> Schema:
        """Add the format."""
        return _change_members(schema, lambda member: {**member, "format": self._name})
