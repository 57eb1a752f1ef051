"""A form: a type as a `requestedSchema`, and the user's content as a value of this type.

"Form mode elicitation schemas are limited to flat objects with primitive properties only" (client/elicitation). A type
with named fields (a dataclass, a TypedDict, a pydantic model) becomes this object. Any other type is one value, and
becomes an object with one property. A type that the restricted schema cannot express is refused with the reason.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NoReturn

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.schemas.json_types import NULL, JsonType, check_object, read_part
from mcp_functions.schemas.parameters import to_camel_case
from mcp_functions.schemas.type_reader import read_type

if TYPE_CHECKING:
    from collections.abc import Mapping

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


class Form:
    """A type that a user fills in."""

    def __init__(self, annotation: object, type_: JsonType, key: str, *, camel_case: bool) -> None:
        """Take a type with named fields; any other type becomes the only property of a form."""
        self.annotation = annotation
        self._type = type_
        self._definitions: Mapping[str, Any] = type_.schema.get("$defs", {})
        self._object = _follow_reference(type_.schema, self._definitions)  # the JSON Schema with the properties
        self._path = f"{getattr(annotation, '__name__', '')}."  # where a field is, for errors: "City.zip"
        if "properties" not in self._object:
            self._type = _with_one_property(key, type_, is_optional=NULL in self._object.get("anyOf", ()))
            self._object = self._type.schema
            self._path = ""
        # The name of each property on the wire, by the name of the type's field.
        self.wire_names = {name: to_camel_case(name) if camel_case else name for name in self._object["properties"]}
        self._requested: dict[str, Any] = {}  # the `requestedSchema`; empty before `schema` writes it

    def schema(self) -> dict[str, Any]:
        """Return the `requestedSchema`, which every round sends unchanged.

        It is not made with the form. `InputResponses.accepted` may read an answer with a type that is stricter than any
        form, a string with a pattern for example.

        Raises:
            DeveloperError: the restricted schema cannot express a field.
        """
        if self._requested:
            return self._requested
        properties = {}
        for name, field in self._object["properties"].items():
            properties[self.wire_names[name]] = _property(self._path + name, name, field, self._definitions)
        requested = {"type": "object", "properties": properties}
        if self._object.get("required"):
            requested["required"] = [self.wire_names[name] for name in self._object["required"]]
        self._requested = requested
        return requested

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
        filled = {name: content[wire] for name, wire in self.wire_names.items() if wire in content}
        try:
            return self._type.read(filled)
        except ValueError as error:
            raise InvalidAnswer(str(error)) from None


# The forms that were read, by the id of the type, the key of the question, and `camel_case`. Every round asks with the
# same types again. Literal["a", "b"] equals Literal["b", "a"], but these are two forms, so the id distinguishes them. A
# form keeps its type in memory, so that Python gives this id to no other type.
_forms: dict[tuple[int, str, bool], Form] = {}
MAX_FORMS = 256  # a function may make types and keys without end


def read_form(annotation: object, key: str, *, camel_case: bool) -> Form:
    """Read a type as a form.

    Args:
        annotation: a type with named fields, or the type of one value.
        key: the key of the question, which also names the property of a form with one value.
        camel_case: True if the names of properties become camelCase on the wire.

    Raises:
        DeveloperError: JSON has no such type.
    """
    form_key = (id(annotation), key, camel_case)
    if form_key in _forms:
        return _forms[form_key]
    try:
        type_ = read_type(annotation)
    except (TypeError, NameError, AttributeError, SyntaxError) as error:  # an annotation can be any expression
        rule = "{key}: a form is a dataclass, a TypedDict, a pydantic model, or the type of one value ({reason})"
        raise DeveloperError(rule, key=key, reason=error) from error
    form = Form(annotation, type_, key, camel_case=camel_case)
    if len(_forms) >= MAX_FORMS:
        _forms.clear()
    _forms[form_key] = form
    return form


def _with_one_property(key: str, value: JsonType, *, is_optional: bool) -> JsonType:
    """Return the type of an object whose only property, named as the question, is a value of another type."""
    name = re.sub(r"[^\w-]+", "_", key) or "answer"  # a client may read a dot in a name as a path

    def read(members: object) -> object:
        return read_part(name, value, check_object(members).get(name))

    return JsonType({"properties": {name: value.schema}, "required": [] if is_optional else [name]}, read)


def _property(path: str, name: str, field: dict[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Write one property of a form; errors name the field by its path."""
    # "Servers MUST NOT request sensitive information through form mode": it would pass through client and model.
    if name.lower().replace("_", "").replace("-", "") in SECRET_NAMES:
        _refuse(path, "a form is no place for secrets: elicit.url(…) leads to a page of your own")
    schema = _simplify(field, definitions)
    # Pydantic makes a title from the name. Clients do the same, so it is left out.
    if schema.get("title") == name.replace("_", " ").title().strip():
        del schema["title"]
    if schema.get("type") == "array":
        items = _simplify(schema.get("items", {}), definitions)
        schema["items"] = _choices(path, items)
    _check_property(path, schema)
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


def _choices(path: str, items: dict[str, Any]) -> dict[str, Any]:
    """Return the `items` of a list, which must be choices; choices with titles are `anyOf` there, and not `oneOf`."""
    items.pop("title", None)
    if "oneOf" in items:
        items = {"anyOf": items["oneOf"]}
    if set(items) not in ITEM_KEYWORDS or items.get("type", "string") != "string":
        _refuse(path, "a list in a form is a choice among fixed strings: list[Literal[…]] or a list of an Enum")
    return items


def _check_property(path: str, schema: dict[str, Any]) -> None:
    allowed = ALLOWED.get(str(schema.get("type")))
    choices = schema.get("enum", [])
    if allowed is None:
        _refuse(path, "a form holds strings, numbers, booleans and choices; nothing nested")
    if not all(isinstance(choice, str) for choice in choices):
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
