"""A form: a type as a `requestedSchema`, and the user's content as a value of this type.

"Form mode elicitation schemas are limited to flat objects with primitive properties only" (client/elicitation). A type
with named fields (a dataclass, a TypedDict, a pydantic model) becomes this object. Any other type is one value, and
becomes an object with one property. A type that the restricted schema cannot express is refused with the reason.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, NoReturn

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.schemas.json_types import read_part
from mcp_functions.schemas.parameters import to_camel_case
from mcp_functions.schemas.type_reader import read_type
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.schemas.json_types import JsonType

# PrimitiveSchemaDefinition of schema.ts: the keywords of each type of property. None of them has `pattern`.
COMMON = {"type", "title", "description", "default"}
ALLOWED = {
    "string": COMMON | {"minLength", "maxLength", "format", "enum", "enumNames", "oneOf"},
    "number": COMMON | {"minimum", "maximum"},
    "integer": COMMON | {"minimum", "maximum"},
    "boolean": COMMON,
    "array": COMMON | {"minItems", "maxItems", "items"},
}
ITEM_KEYWORDS = ({"type", "enum"}, {"anyOf"})  # the two forms of `items`: plain choices, and choices with titles
FORMATS = {"email", "uri", "date", "date-time"}
# A field with one of these names, in lower case and without `_` and `-`, asks for a secret.
SECRET_NAMES = {
    "accesstoken", "apikey", "cardnumber", "clientsecret", "creditcard", "credential", "credentials", "cvc", "cvv",
    "passphrase", "passwd", "password", "privatekey", "refreshtoken", "secret",
}  # fmt: skip


class InvalidAnswer(Exception):
    """An accepted form does not fit; the message names the field and the reason, for the user."""


class Form(NamedTuple):
    """A type that a user fills in."""

    # Returns the `requestedSchema`. It raises a DeveloperError if the restricted schema cannot express a field.
    schema: Callable[[], dict[str, Any]]
    wire: Mapping[str, str]  # the name of each field on the wire, by its name in the type
    # Makes the answer from the fields that the user filled in. It raises ValueError if they do not fit the type.
    read: Callable[[dict[str, Any]], Any]

    def accept(self, content: object) -> Any:  # noqa: ANN401 - a value of the author's type
        """Read the user's answer.

        Args:
            content: the unchecked `ElicitResult.content`; keys that the form does not have are ignored.

        Raises:
            InvalidAnswer: the content does not fit the form.
        """
        if not isinstance(content, dict):
            message = "the form came back without content"
            raise InvalidAnswer(message)
        filled = {name: content[wire] for name, wire in self.wire.items() if wire in content}
        try:
            return self.read(filled)
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
    # Only classes are cached: Literal["a", "b"] equals Literal["b", "a"], but their forms differ.
    if isinstance(annotation, type):
        return _read_cached(annotation, key, camel_case=camel_case)
    return _read_form(annotation, key, camel_case=camel_case)


def _read_form(annotation: object, key: str, *, camel_case: bool) -> Form:
    try:
        type_ = read_type(annotation)
    except (TypeError, NameError, AttributeError, SyntaxError) as error:  # an annotation can be any expression
        rule = "{key}: a form is a dataclass, a TypedDict, a pydantic model, or the type of one value ({reason})"
        raise DeveloperError(rule, key=key, reason=error) from error
    definitions = type_.schema.get("$defs", {})
    fields = _follow_reference(type_.schema, definitions)
    place = f"{getattr(annotation, '__name__', '')}."  # what an error message writes before the name of a field
    read: Callable[[dict[str, Any]], Any] = type_.read
    if "properties" not in fields:
        name = re.sub(r"[^\w-]+", "_", key) or "answer"  # a client may read a dot in a name as a path
        is_optional = {"type": "null"} in fields.get("anyOf", ())
        required = [] if is_optional else [name]
        fields = {"properties": {name: type_.schema}, "required": required, "$defs": definitions}
        place = ""
        read = partial(_read_value, name, type_)
    wire = {name: to_camel_case(name) if camel_case else name for name in fields["properties"]}
    schema = cache(partial(_requested_schema, place, fields, wire))  # every round asks for it, and it never changes
    return Form(schema, wire, read)


_read_cached = lru_cache(maxsize=256)(_read_form)


def _read_value(name: str, type_: JsonType, filled: dict[str, Any]) -> object:
    return read_part(name, type_, filled.get(name))


def _requested_schema(place: str, fields: Mapping[str, Any], wire: Mapping[str, str]) -> dict[str, Any]:
    """Write the `requestedSchema` of a type; errors name a field by `place` and its name."""
    definitions = fields.get("$defs", {})
    properties = {
        wire[name]: _property(place + name, name, field, definitions) for name, field in fields["properties"].items()
    }
    requested: dict[str, Any] = {"type": "object", "properties": properties}
    if fields.get("required"):
        requested["required"] = [wire[name] for name in fields["required"]]
    return requested


def _property(place: str, name: str, field: dict[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    # "Servers MUST NOT request sensitive information through form mode": it would pass through client and model.
    if name.lower().replace("_", "").replace("-", "") in SECRET_NAMES:
        _refuse(place, "a form is no place for secrets: elicit.url(…) leads to a page of your own")
    schema = _simplify(field, definitions)
    # Pydantic makes a title from the name. Clients do the same, so it is left out.
    if schema.get("title") == name.replace("_", " ").title().strip():
        del schema["title"]
    if schema.get("type") == "array":
        items = _simplify(schema.get("items", {}), definitions)
        schema["items"] = _choices(place, items)
    _check_property(place, schema)
    return schema


def _follow_reference(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a schema, and replace its `$ref` with the keywords of that definition. The schema's own keywords win."""
    own = {keyword: value for keyword, value in schema.items() if keyword != "$ref"}
    if "$ref" not in schema:
        return own
    definition = dict(definitions[schema["$ref"].rpartition("/")[2]])
    definition.pop("title", None)  # the name of the class, which says nothing to users
    return {**definition, **own}


def _simplify(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Write a field's schema with the few keywords that the restricted schema has."""
    schema = _follow_reference(field, definitions)
    # The restricted schema has no null: a field that may be empty is one that is not required.
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
    # A default of null means that the field starts empty.
    if "default" in schema and schema["default"] is None:
        del schema["default"]
    return schema


def _choices(place: str, items: dict[str, Any]) -> dict[str, Any]:
    """Return the `items` of a list, which must be choices; choices with titles are `anyOf` there, and not `oneOf`."""
    items.pop("title", None)
    if "oneOf" in items:
        items = {"anyOf": items["oneOf"]}
    if set(items) not in ITEM_KEYWORDS or items.get("type", "string") != "string":
        _refuse(place, "a list in a form is a choice among fixed strings: list[Literal[…]] or a list of an Enum")
    return items


def _check_property(place: str, schema: dict[str, Any]) -> None:
    allowed = ALLOWED.get(str(schema.get("type")))
    choices = schema.get("enum", [])
    if allowed is None:
        _refuse(place, "a form holds strings, numbers, booleans and choices; nothing nested")
    if not all(isinstance(choice, str) for choice in choices):
        _refuse(place, "the choices of a form are strings")
    # "enumNames: (Legacy) Display names for enum values", for clients without `oneOf`.
    if "enumNames" in schema and len(schema["enumNames"]) != len(choices):
        _refuse(place, "enumNames names each of the choices, in their order")
    unknown = sorted(set(schema) - allowed)
    if unknown:
        _refuse(place, "a form cannot say {unknown!r} (the specification's restricted schema)", unknown=unknown[0])
    if "format" in schema and schema["format"] not in FORMATS:
        _refuse(place, "a form knows the formats {formats}", formats=", ".join(sorted(FORMATS)))


def _refuse(place: str, reason: str, **values: object) -> NoReturn:
    raise DeveloperError("{where}: " + reason, where=place, **values)
