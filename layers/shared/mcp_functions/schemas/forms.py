"""A form: writes a type as a `requestedSchema` for the client, and reads the user's answer as a value of this type.

    @dataclass
    class Trip:
        town: str
        nights: int = 1

    requestedSchema    {"type": "object", "properties": {"town": {"type": "string"}, "nights": …}, "required": ["town"]}
    answer             {"town": "Ely"}
    value              Trip(town="Ely", nights=1)

"Form mode elicitation schemas are limited to flat objects with primitive properties only" (client/elicitation). A type
with named fields (a dataclass, a TypedDict, a pydantic model) becomes this object. Any other type is one value, and
becomes an object with one property. A type that this restricted schema cannot express is refused with the reason.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.schemas.checking import at_place
from mcp_functions.schemas.json_types import NULL, JsonType
from mcp_functions.schemas.parameters import to_camel_case
from mcp_functions.schemas.type_reader import read_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.wire_types import Schema


class InvalidAnswer(Exception):
    """An accepted form does not fit; the message names the field and the reason, for the user."""


class Form:
    """An object whose members a user fills in. `wire_names` has the names in the form by those of the members."""

    def __init__(self, members: JsonType, path: str, *, camel_case: bool) -> None:
        """Make a form from the type of the object; errors put `path` before a member's name, as in "City.zip"."""
        self._members = members
        self._path = path
        names = members.form_schema["properties"]
        self.wire_names = {name: to_camel_case(name) if camel_case else name for name in names}

    def schema(self) -> Schema:
        """Write the `requestedSchema`; raise a DeveloperError for a member that it cannot express."""
        described = self._members.form_schema
        definitions = described.get("$defs", {})
        properties: dict[str, Schema] = {}
        for name, field in described["properties"].items():
            path = self._path + name
            _check_asks_no_secret(path, name, field)
            properties[self.wire_names[name]] = _write_property(path, field, definitions)
        schema: Schema = {"type": "object", "properties": properties}
        if described.get("required"):
            schema["required"] = [self.wire_names[name] for name in described["required"]]
        return schema

    def accept(self, content: object) -> Any:  # noqa: ANN401 - a value of the author's type
        """Read the user's answer, without members that the form does not have; InvalidAnswer if it does not fit."""
        if not isinstance(content, dict):
            raise InvalidAnswer("the form came back without content")
        members = {name: content[wire_name] for name, wire_name in self.wire_names.items() if wire_name in content}
        try:
            return self._members.read(members)
        except ValueError as error:
            raise InvalidAnswer(str(error)) from None


def read_form(annotation: object, key: str, *, camel_case: bool) -> Form:
    """Read a type with named fields, or the type of one value, as a form; DeveloperError if JSON has no such type.

    The property of a form with one value has the key of the question as its name.
    """
    try:
        type_ = read_type(annotation)
    except (TypeError, NameError, AttributeError, SyntaxError) as error:  # of any expression
        rule = "{key}: a form is a dataclass, a TypedDict, a pydantic model, or the type of one value ({reason})"
        raise DeveloperError(rule, key=key, reason=error) from error
    if "properties" not in type_.form_schema:
        return Form(_with_one_property(key, type_), path="", camel_case=camel_case)
    path = f"{annotation.__name__}." if isinstance(annotation, type) else ""
    return Form(type_, path, camel_case=camel_case)


def _with_one_property(key: str, type_: JsonType) -> JsonType:
    """Return the type of an object with one property, named as the question; `read` returns the property's value."""
    name = re.sub(r"[^\w-]+", "_", key) or "answer"  # a client may read a dot as a path
    property_ = type_.form_schema.copy()
    definitions = property_.pop("$defs", {})
    schema: Schema = {"$defs": definitions, "properties": {name: property_}}
    may_be_none = NULL in type_.schema.get("anyOf", ())
    if not may_be_none:
        schema["required"] = [name]
    return JsonType(schema, lambda members: at_place(name, type_.convert, members.get(name)))


# A field with one of these names, in lower case and without `_` and `-`, asks for a secret.
SECRET_NAMES = {
    "accesstoken", "apikey", "cardnumber", "clientsecret", "creditcard", "credential", "credentials", "cvc", "cvv",
    "passphrase", "passwd", "password", "privatekey", "refreshtoken", "secret",
}  # fmt: skip


def _check_asks_no_secret(path: str, name: str, field: Schema) -> None:
    # "Servers MUST NOT request sensitive information through form mode": it would pass through client and model.
    plain_name = name.lower().replace("_", "").replace("-", "")
    if plain_name in SECRET_NAMES or field.get("writeOnly"):
        raise _problem(path, "a form is no place for secrets: elicit.url(…) leads to a page of your own")


# ---- The restricted schema of a property: PrimitiveSchemaDefinition of schema.ts

# The keywords of each type of property. None of them has `pattern`.
COMMON = {"type", "title", "description", "default"}
KEYWORDS = {
    "string": COMMON | {"minLength", "maxLength", "format", "enum", "enumNames", "oneOf"},
    "number": COMMON | {"minimum", "maximum"},
    "integer": COMMON | {"minimum", "maximum"},
    "boolean": COMMON,
    "array": COMMON | {"minItems", "maxItems", "items"},
}
FORMATS = {"email", "uri", "date", "date-time"}


def _write_property(path: str, field: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Write a field as a property; errors name it by its path."""
    schema = _simplify(field, definitions)
    if schema.get("type") == "array":
        items = schema.get("items")
        schema["items"] = _write_choices(path, _simplify(items, definitions) if isinstance(items, dict) else {})
    _check_property(path, schema)
    return schema


def _check_property(path: str, schema: Schema) -> None:
    keywords = KEYWORDS.get(str(schema.get("type")))
    if keywords is None:
        raise _problem(path, "a form holds strings, numbers, booleans and choices; nothing nested")
    choices = schema.get("enum", [])
    titled_choices = [choice.get("const") for choice in schema.get("oneOf", [])]
    if not all(isinstance(choice, str) for choice in [*choices, *titled_choices]):
        raise _problem(path, "the choices of a form are strings")
    # "enumNames: (Legacy) Display names for enum values", for clients without `oneOf`.
    if "enumNames" in schema and len(schema["enumNames"]) != len(choices):
        raise _problem(path, "enumNames names each of the choices, in their order")
    unknown = sorted(set(schema) - keywords)
    if unknown:
        raise _problem(
            path, "a form cannot say {unknown!r} (the specification's restricted schema)", unknown=unknown[0]
        )
    if "format" in schema and schema["format"] not in FORMATS:
        raise _problem(path, "a form knows the formats {formats}", formats=", ".join(sorted(FORMATS)))


def _write_choices(path: str, items: Schema) -> Schema:
    """Write the `items` of a list, which must be choices; choices with titles are `anyOf` there, and not `oneOf`."""
    items.pop("title", None)
    items.pop("description", None)
    if "oneOf" in items:
        items = {"anyOf": items["oneOf"]}
    has_titles = set(items) == {"anyOf"} and all(isinstance(choice.get("const"), str) for choice in items["anyOf"])
    has_strings = set(items) == {"type", "enum"} and items["type"] == "string"
    if not has_titles and not has_strings:
        raise _problem(path, "a list in a form is a choice among fixed strings: list[Literal[…]] or a list of an Enum")
    return items


def _problem(path: str, reason: str, **values: object) -> DeveloperError:
    return DeveloperError("{where}: " + reason, where=path, **values)


# ---- A schema with fewer keywords, as the restricted schema has them


def _simplify(field: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Copy a field's schema, and write it with the few keywords that the restricted schema has."""
    schema = _without_reference(field, definitions)
    schema = _without_null(schema, definitions)
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    _include_limits(schema)
    # These keywords tell a client something, and limit no answer.
    schema.pop("examples", None)
    schema.pop("deprecated", None)
    schema.pop("readOnly", None)
    schema.pop("$comment", None)
    if "default" in schema and schema["default"] is None:  # the field starts empty
        del schema["default"]
    return schema


def _without_reference(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Replace a `$ref` with the keywords of that definition. A keyword beside it replaces that of the definition."""
    own = schema.copy()
    if "$ref" not in own:
        return own
    name = own.pop("$ref").rpartition("/")[2]  # of "#/$defs/City"
    definition = definitions[name].copy()
    definition.pop("title", None)  # the name of the class, which says nothing to users
    return {**definition, **own}


def _without_null(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Write `int | None` as `int`: the restricted schema has no null, and a field that may be empty is not required."""
    members = [member for member in schema.get("anyOf", []) if member.get("type") != "null"]
    # Each integer is a number.
    if {str(member.get("type")) for member in members} == {"integer", "number"}:
        members = [{"type": "number"}]
    if len(members) != 1:
        return schema
    del schema["anyOf"]
    return {**_simplify(members[0], definitions), **schema}


def _include_limits(schema: Schema) -> None:
    """Write `exclusiveMinimum` as `minimum`, which the restricted schema has; an answer is checked by the exact one."""
    step = 1 if schema.get("type") == "integer" else 0
    if "exclusiveMinimum" in schema:
        least = schema.pop("exclusiveMinimum") + step
        schema["minimum"] = max(least, schema.get("minimum", least))
    if "exclusiveMaximum" in schema:
        most = schema.pop("exclusiveMaximum") - step
        schema["maximum"] = min(most, schema.get("maximum", most))
