"""The JSON Schema of a type that pydantic reads, as the type's values are.

pydantic describes more than clients should check: formats that a written value may not have, defaults that no client
can send, names of a dict that are no strings.
"""

from __future__ import annotations

from collections import defaultdict
from enum import Flag
from typing import TYPE_CHECKING, Any, cast

from pydantic.json_schema import GenerateJsonSchema

from mcp_functions.schemas.checking import check
from mcp_functions.schemas.json_types import CERTAIN_FORMATS

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import core_schema

    from mcp_functions.protocol.wire_types import Schema


class Described(GenerateJsonSchema):
    """The JSON Schema of a type, as its values are."""

    def emit_warning(self, kind: str, detail: str) -> None:
        """Emit no warning, because it would quote a default in the log."""

    def generate_inner(self, schema: Any) -> JsonSchemaValue:  # noqa: ANN401
        """Drop the formats that a written value may not have: clients check them."""
        described = super().generate_inner(schema)
        format_ = described.get("format")
        if self.mode == "validation" or not isinstance(format_, str) or format_ in CERTAIN_FORMATS:
            return described
        if format_ == "date-time" and (schema["type"] != "datetime" or schema.get("tz_constraint") == "aware"):
            return described
        return {keyword: part for keyword, part in described.items() if keyword != "format"}

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Publish no default that no client can send: the None of `int = None`, or the asterisks of a secret."""
        described = super().default_schema(schema)
        # A class that refers to itself is not yet in the definitions.
        definitions: Any = defaultdict(lambda: {"type": "object"}, self.definitions)
        try:
            check(cast("Schema", described), definitions, described.get("default"))
        except ValueError:
            described.pop("default", None)
        if described.get("writeOnly"):
            described.pop("default", None)
        return described

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """Say nothing of the names of `dict[Size, str]`, where Size is an IntEnum: no name in JSON is an integer."""
        described = super().dict_schema(schema)
        names = self.resolve_ref_schema(described.get("propertyNames", {}))
        if names.get("type", "string") != "string":
            del described["propertyNames"]
        return described

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        """Describe a Flag without its members, because their sums are values, too."""
        described = super().enum_schema(schema)
        if issubclass(schema["cls"], Flag):
            described.pop("enum", described.pop("const", None))
        return described

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        """Require the tag in each member, as pydantic does when it reads one, also where the tag has a default."""
        described = super().tagged_union_schema(schema)
        tag = described.get("discriminator", {}).get("propertyName")
        return {**described, "required": [tag]} if tag else described

    def ser_schema(self, schema: Any) -> JsonSchemaValue | None:  # noqa: ANN401
        """Describe what an author's serializer without a return annotation writes as anything."""
        is_function = schema["type"] in ("function-plain", "function-wrap") and schema.get("return_schema") is None
        is_of_author = is_function and str(schema["function"].__module__).partition(".")[0] != "pydantic"
        return {} if is_of_author and self.mode == "serialization" else super().ser_schema(schema)


class WithoutTitles(Described):
    """The same, with only the titles that an author wrote."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002
        """Return False: no field gets a title from its name."""
        return False
