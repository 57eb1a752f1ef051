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
becomes an object with one property. A type that the restricted schema cannot express is refused with the reason.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NoReturn

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.schemas.checking import at_place
from mcp_functions.schemas.json_types import NULL, JsonType
from mcp_functions.schemas.parameters import to_camel_case
from mcp_functions.schemas.type_reader import read_type

if TYPE_CHECKING:
    from collections.abc import Mapping


class InvalidAnswer(Exception):
    """An accepted form does not fit; the message names the field and the reason, for the user."""


class Form:
    """An object whose members a user fills in.

    Attributes:
        wire_names: the names of the properties in the form, by the names of the members.
    """

    def __init__(self, members: JsonType, path: str, *, camel_case: bool) -> None:
        """Make a form from the type of the object; errors put `path` before a member's name, as in "City.zip"."""
        self._members = members
        self._path = path
        names = members.form_schema["properties"]
        self.wire_names = {name: to_camel_case(name) if camel_case else name for name in names}
        self._schema: dict[str, Any] | None = None  # written once

    def schema(self) -> dict[str, Any]:
        """Write the `requestedSchema`.

        Raises:
            DeveloperError: the restricted schema cannot express a member.
        """
        if self._schema is not None:
            return self._schema
        schema = self._members.form_schema
        definitions = schema.get("$defs", {})
        requested: dict[str, Any] = {"type": "object", "properties": {}}
        for name, member in schema["properties"].items():
            property_ = _write_property(name, member, definitions, path=self._path + name)
            requested["properties"][self.wire_names[name]] = property_
        if schema.get("required"):
            requested["required"] = [self.wire_names[name] for name in schema["required"]]
        self._schema = requested
        return requested

    def accept(self, content: object) -> Any:  # noqa: ANN401 - a value of the author's type
        """Read the user's answer.

        Args:
            content: the unchecked `ElicitResult.content`; members that the form does not have are ignored.

        Raises:
            InvalidAnswer: the content does not fit the form.
        """
        if not isinstance(content, dict):
            raise InvalidAnswer("the form came back without content")
        members = {name: content[wire_name] for name, wire_name in self.wire_names.items() if wire_name in content}
        try:
            return self._members.read(members)
        except ValueError as error:
            raise InvalidAnswer(str(error)) from None


def read_form(annotation: object, key: str, *, camel_case: bool) -> Form:
    """Read a type as a form.

    Args:
        annotation: a type with named fields, or the type of one value.
        key: the key of the question, which also names the property of a form with one value.
        camel_case: True if the names of properties become camelCase on the wire.

    Raises:
        DeveloperError: JSON has no such type.
    """
    try:
        type_ = read_type(annotation)
    # an annotation can be any expression
    except (TypeError, NameError, AttributeError, SyntaxError) as error:
        rule = "{key}: a form is a dataclass, a TypedDict, a pydantic model, or the type of one value ({reason})"
        raise DeveloperError(rule, key=key, reason=error) from error
    if "properties" not in type_.form_schema:
        return Form(_with_one_property(key, type_), path="", camel_case=camel_case)
    path = f"{annotation.__name__}." if isinstance(annotation, type) else ""
    return Form(type_, path, camel_case=camel_case)


def _with_one_property(key: str, type_: JsonType) -> JsonType:
    """Return the type of an object with one property, named as the question; `read` returns the property's value."""
    name = re.sub(r"[^\w-]+", "_", key) or "answer"  # a client may read a dot in a name as a path
    property_ = dict(type_.form_schema)
    schema: dict[str, Any] = {"$defs": property_.pop("$defs", {}), "properties": {name: property_}}
    is_optional = NULL in type_.schema.get("anyOf", ())
    if not is_optional:
        schema["required"] = [name]

    return JsonType(schema, lambda members: at_place(name, type_.convert, members.get(name)))


# A field with one of these names, in lower case and without `_` and `-`, asks for a secret.
SECRET_NAMES = {
    "accesstoken", "apikey", "cardnumber", "clientsecret", "creditcard", "credential", "credentials", "cvc", "cvv",
    "passphrase", "passwd", "password", "privatekey", "refreshtoken", "secret",
}  # fmt: skip


def _write_property(name: str, field: dict[str, Any], definitions: Mapping[str, Any], *, path: str) -> dict[str, Any]:
    """Write one property of a form; errors name the field by its path."""
    # "Servers MUST NOT request sensitive information through form mode": it would pass through client and model.
    plain_name = name.lower().replace("_", "").replace("-", "")
    if plain_name in SECRET_NAMES or field.get("writeOnly"):
        _refuse(path, "a form is no place for secrets: elicit.url(…) leads to a page of your own")
    schema = _simplify(field, definitions)
    if schema.get("type") == "array":
        items = _simplify(schema.get("items", {}), definitions)
        schema["items"] = _write_choices(path, items)
    _check_property(path, schema)
    return schema


def _follow_reference(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a schema, and replace its `$ref` with the keywords of that definition.

    A keyword beside the `$ref` replaces the same keyword of the definition.
    """
    own = {keyword: value for keyword, value in schema.items() if keyword != "$ref"}
    if "$ref" not in schema:
        return own
    name = schema["$ref"].rpartition("/")[2]  # of "#/$defs/City"
    definition = dict(definitions[name])
    definition.pop("title", None)  # the name of the class, which says nothing to users
    return {**definition, **own}


# These keywords tell a client something, and limit no answer.
WITHOUT_LIMITS = ("examples", "deprecated", "readOnly", "$comment")


def _simplify(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Write a field's schema with the few keywords that the restricted schema has."""
    schema = _follow_reference(field, definitions)
    # The restricted schema has no null. A field that may be empty is not required there.
    members = [member for member in schema.get("anyOf", []) if member.get("type") != "null"]
    # Each integer is a number.
    if {member.get("type") for member in members} == {"integer", "number"}:
        members = [{"type": "number"}]
    # A union of one member is this member.
    if len(members) == 1:
        del schema["anyOf"]
        schema = {**_simplify(members[0], definitions), **schema}
    # A constant is a list of one choice.
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    # The answer of a user is checked by the exact limit. The restricted schema has only limits that are included.
    step = 1 if schema.get("type") == "integer" else 0
    if "exclusiveMinimum" in schema:
        least = schema.pop("exclusiveMinimum") + step
        schema["minimum"] = max(least, schema.get("minimum", least))
    if "exclusiveMaximum" in schema:
        most = schema.pop("exclusiveMaximum") - step
        schema["maximum"] = min(most, schema.get("maximum", most))
    for keyword in WITHOUT_LIMITS:
        schema.pop(keyword, None)
    # A default of null means that the field starts empty.
    if "default" in schema and schema["default"] is None:
        del schema["default"]
    return schema


def _write_choices(path: str, items: dict[str, Any]) -> dict[str, Any]:
    """Write the `items` of a list, which must be choices; choices with titles are `anyOf` there, and not `oneOf`."""
    items = {keyword: part for keyword, part in items.items() if keyword not in ("title", "description")}
    if "oneOf" in items:
        items = {"anyOf": items["oneOf"]}
    has_titles = set(items) == {"anyOf"} and all(isinstance(choice.get("const"), str) for choice in items["anyOf"])
    has_strings = set(items) == {"type", "enum"} and items["type"] == "string"
    if not has_titles and not has_strings:
        _refuse(path, "a list in a form is a choice among fixed strings: list[Literal[…]] or a list of an Enum")
    return items


# PrimitiveSchemaDefinition of schema.ts: the keywords of each type of property. None of them has `pattern`.
COMMON = {"type", "title", "description", "default"}
ALLOWED = {
    "string": COMMON | {"minLength", "maxLength", "format", "enum", "enumNames", "oneOf"},
    "number": COMMON | {"minimum", "maximum"},
    "integer": COMMON | {"minimum", "maximum"},
    "boolean": COMMON,
    "array": COMMON | {"minItems", "maxItems", "items"},
}
FORMATS = {"email", "uri", "date", "date-time"}


def _check_property(path: str, schema: dict[str, Any]) -> None:
    allowed = ALLOWED.get(str(schema.get("type")))
    choices = schema.get("enum", [])
    titled_choices = [choice.get("const") for choice in schema.get("oneOf", [])]
    if allowed is None:
        _refuse(path, "a form holds strings, numbers, booleans and choices; nothing nested")
    if not all(isinstance(choice, str) for choice in [*choices, *titled_choices]):
        _refuse(path, "the choices of a form are strings")
    # "enumNames: (Legacy) Display names for enum values", for clients without `oneOf`.
    if "enumNames" in schema and len(schema["enumNames"]) != len(choices):
        _refuse(path, "enumNames names each of the choices, in their order")
    unknown = sorted(set(schema) - allowed)
    if unknown:
        _refuse(path, "a form cannot say {unknown!r} (the specification's restricted schema)", unknown=unknown[0])
    if "format" in schema and schema["format"] not in FORMATS:
        _refuse(path, "a form knows the formats {formats}", formats=", ".join(sorted(FORMATS)))


def _refuse(path: str, reason: str, **values: object) -> NoReturn:
    raise DeveloperError("{where}: " + reason, where=path, **values)
