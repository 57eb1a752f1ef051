"""A form: a type as a `requestedSchema`, and the user's content as a value of this type.

"Form mode elicitation schemas are limited to flat objects with primitive properties only" (client/elicitation). A type
with named fields (a dataclass, a TypedDict, a pydantic model) becomes this object. Any other type is one value, and
becomes an object with one property. A type that the restricted schema cannot express is refused with the reason.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, NoReturn, get_type_hints

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
ITEMS = ({"type", "enum"}, {"anyOf"})
FORMATS = {"email", "uri", "date", "date-time"}
SECRETS = {
    "accesstoken", "apikey", "cardnumber", "clientsecret", "creditcard", "credential", "credentials", "cvc", "cvv",
    "passphrase", "passwd", "password", "privatekey", "refreshtoken", "secret",
}  # fmt: skip
UNREADABLE = (TypeError, NameError, AttributeError, SyntaxError)  # from annotations, which can be any value


class InvalidAnswer(Exception):
    """An accepted form does not fit; the message names the field and the reason, for the user."""


class Form(NamedTuple):
    """A type that a user fills in.

    Attributes:
        schema: writes the `requestedSchema`, once; or raises DeveloperError, which names the field and the reason.
        wire: the name of each field on the wire.
        read: makes the answer from the fields that the user filled in, or raises ValueError.

    """

    schema: Callable[[], dict[str, Any]]
    wire: Mapping[str, str]
    read: Callable[[dict[str, Any]], Any]

    def accept(self, content: object) -> Any:  # noqa: ANN401 - a value of the author's type
        """Read the user's answer.

        Args:
            content: `ElicitResult.content`, unchecked; keys that the form does not have are ignored.

        Raises:
            InvalidAnswer: it does not fit the form.

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
        key: of the question; it names the property of one value.
        camel_case: whether the names of properties become camelCase on the wire.

    Raises:
        DeveloperError: JSON has no such type.

    """
    # Only classes are cached: Literal["a", "b"] equals Literal["b", "a"], but their forms differ.
    read = _read_cached if isinstance(annotation, type) else _read_form
    return read(annotation, key, camel_case=camel_case)


def _read_form(annotation: object, key: str, *, camel_case: bool) -> Form:
    try:
        type_ = read_type(annotation)
    except UNREADABLE as error:
        rule = "{key}: a form is a dataclass, a TypedDict, a pydantic model, or the type of one value ({reason})"
        raise DeveloperError(rule, key=key, reason=_unreadable_field(annotation) or error) from error
    definitions = type_.schema.get("$defs", {})
    root = {**definitions.get(type_.schema.get("$ref", "").rpartition("/")[2], {}), **type_.schema}
    prefix = f"{getattr(annotation, '__name__', '')}."
    read: Callable[[dict[str, Any]], Any] = type_.read
    if "properties" not in root:
        name = re.sub(r"[^\w-]+", "_", key) or "answer"  # clients may read a dot in it as a path
        is_optional = {"type": "null"} in type_.schema.get("anyOf", ())
        root = {"properties": {name: type_.schema}, "required": [] if is_optional else [name]}
        prefix, read = "", partial(_read_value, name, type_)
    wire = {name: to_camel_case(name) if camel_case else name for name in root["properties"]}

    @cache
    def schema() -> dict[str, Any]:
        properties = {
            wire[name]: _property(prefix, name, field, definitions) for name, field in root["properties"].items()
        }
        required = [wire[name] for name in root.get("required", ())]
        return {"type": "object", "properties": properties, **({"required": required} if required else {})}

    return Form(schema, wire, read)


_read_cached = lru_cache(maxsize=256)(_read_form)


def _read_value(name: str, type_: JsonType, filled: dict[str, Any]) -> object:
    return read_part(name, type_, filled.get(name))


def _unreadable_field(annotation: object) -> str:
    """Name the field that cannot be read, with the reason; "" if it is unknown."""
    try:
        hints = get_type_hints(annotation, include_extras=True) if isinstance(annotation, type) else {}
    except UNREADABLE:
        return ""
    for name, hint in hints.items():
        try:
            read_type(hint)
        except UNREADABLE as error:
            return f"{getattr(annotation, '__name__', '')}.{name}: {error}"
    return ""


def _property(prefix: str, name: str, field: dict[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    place = prefix + name
    # "Servers MUST NOT request sensitive information through form mode": it would pass through client and model.
    if name.lower().replace("_", "").replace("-", "") in SECRETS:
        _refuse(place, "a form is no place for secrets: elicit.url(…) leads to a page of your own")
    schema = _resolved(field, definitions)
    if schema.get("title") == name.replace("_", " ").title().strip():
        del schema["title"]  # pydantic wrote it from the name, as a client can
    if schema.get("type") == "array":
        schema["items"] = _items(place, _resolved(schema.get("items", {}), definitions))
    _check_property(place, schema)
    return schema


def _resolved(field: dict[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Write a field without references, without null, and its one choice as a list."""
    schema = dict(field)
    if reference := schema.pop("$ref", None):
        target = dict(definitions[reference.rpartition("/")[2]])
        target.pop("title", None)
        schema = {**target, **schema}
    members = [member for member in schema.get("anyOf", []) if member.get("type") != "null"]
    if {member.get("type") for member in members} == {"integer", "number"}:
        members = [{"type": "number"}]
    if len(members) == 1:
        del schema["anyOf"]
        schema = {**_resolved(members[0], definitions), **schema}
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    if "default" in schema and schema["default"] is None:
        del schema["default"]
    return schema


def _items(place: str, items: dict[str, Any]) -> dict[str, Any]:
    items.pop("title", None)
    if "oneOf" in items:
        items = {"anyOf": items["oneOf"]}
    if set(items) not in ITEMS or items.get("type", "string") != "string":
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
    if unknown := sorted(set(schema) - allowed):
        _refuse(place, "a form cannot say {unknown!r} (the specification's restricted schema)", unknown=unknown[0])
    if schema.get("format", "date") not in FORMATS:
        _refuse(place, "a form knows the formats {formats}", formats=", ".join(sorted(FORMATS)))


def _refuse(place: str, reason: str, **values: object) -> NoReturn:
    raise DeveloperError("{where}: " + reason, where=place, **values)
