"""What a user fills in: a type as a `requestedSchema`, and the user's content back as a value of this type.

"Form mode elicitation schemas are limited to flat objects with primitive properties only". A type with named fields (a
dataclass, a TypedDict, a pydantic model) is such an object. Any other type is one value: an object with one property.
`kinds` reads both. What the restricted schema cannot say is refused when the form is first written, with the reason.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, get_type_hints

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.schemas.json_types import camel, inside, kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.schemas.json_types import Kind

# PrimitiveSchemaDefinition of schema.ts: what each type of property may say. There is no `pattern`.
COMMON = {"type", "title", "description", "default"}
ALLOWED = {
    "string": COMMON | {"minLength", "maxLength", "format", "enum", "enumNames", "oneOf"},
    "number": COMMON | {"minimum", "maximum"},
    "integer": COMMON | {"minimum", "maximum"},
    "boolean": COMMON,
    "array": COMMON | {"minItems", "maxItems", "items"},
}
SECRETS = {
    "password",
    "passwd",
    "passphrase",
    "secret",
    "clientsecret",
    "apikey",
    "accesstoken",
    "refreshtoken",
    "privatekey",
    "credential",
    "credentials",
    "creditcard",
    "cardnumber",
    "cvv",
    "cvc",
}
FORMATS = {"email", "uri", "date", "date-time"}
UNREADABLE = (TypeError, NameError, AttributeError, SyntaxError)  # an annotation is any value
ITEMS = ({"type", "enum"}, {"anyOf"})


class InvalidAnswer(Exception):
    """An accepted form does not fit; the text says which field and why, for the user to read."""


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
        """Read what the user filled in.

        Args:
            content: `ElicitResult.content` as it arrived; keys nobody asked for are ignored.

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


def form_of(annotation: Any, key: str, *, camel_case: bool) -> Form:  # noqa: ANN401 - an annotation is any value
    """Read a type as a form.

    Args:
        annotation: a type with named fields, or the type of one value.
        key: of the question; it names the property of one value.
        camel_case: whether the names of properties go to the wire as camelCase.

    Raises:
        DeveloperError: JSON knows no such type.

    """
    # Only a class is known again: Literal["a", "b"] equals Literal["b", "a"], but their forms differ.
    return (_known_form if isinstance(annotation, type) else _form_of)(annotation, key, camel_case=camel_case)


def _form_of(annotation: Any, key: str, *, camel_case: bool) -> Form:  # noqa: ANN401 - as above
    try:
        expected = kind(annotation)
    except UNREADABLE as error:
        rule = "{key}: a form is a dataclass, a TypedDict, a pydantic model, or the type of one value ({reason})"
        raise DeveloperError(rule, key=key, reason=_culprit(annotation) or error) from error
    definitions = expected.schema.get("$defs", {})
    root = {**definitions.get(expected.schema.get("$ref", "").rpartition("/")[2], {}), **expected.schema}
    where, read = f"{getattr(annotation, '__name__', '')}.", expected.check
    if "properties" not in root:
        name = re.sub(r"[^\w-]+", "_", key) or "answer"  # clients may take a dot in it for a path
        root = {"properties": {name: expected.schema}, "required": [] if _takes_none(expected) else [name]}
        where, read = "", lambda filled: inside(name, expected.check, filled.get(name))
    wire = {name: camel(name) if camel_case else name for name in root["properties"]}
    required = [wire[name] for name in root.get("required", ())]

    @cache
    def schema() -> dict[str, Any]:
        fields = root["properties"].items()
        properties = {wire[name]: _property(where, name, field, definitions) for name, field in fields}
        return {"type": "object", "properties": properties, **({"required": required} if required else {})}

    return Form(schema, wire, read)


_known_form = lru_cache(maxsize=256)(_form_of)


def _culprit(annotation: Any) -> str:  # noqa: ANN401 - as above
    """Name the field that cannot be read, and why; "" if that is not known."""
    try:
        hints = get_type_hints(annotation, include_extras=True) if isinstance(annotation, type) else {}
    except UNREADABLE:
        return ""
    for name, hint in hints.items():
        try:
            kind(hint)
        except UNREADABLE as error:
            return f"{annotation.__name__}.{name}: {error}"
    return ""


def _takes_none(expected: Kind) -> bool:
    try:
        expected.check(None)
    except ValueError:
        return False
    return True


def _property(where: str, name: str, field: dict[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    where += name
    # "Servers MUST NOT request sensitive information through form mode": it would pass through client and model
    if name.lower().replace("_", "").replace("-", "") in SECRETS:
        _refuse(where, "a form is no place for secrets: elicit.url(…) leads to a page of your own")
    schema = _resolved(field, definitions)
    if schema.get("title") == name.replace("_", " ").title().strip():
        del schema["title"]  # pydantic's guess from the name; the client can guess as well
    if schema.get("type") == "array":
        schema["items"] = _items(where, _resolved(schema.get("items", {}), definitions))
    return _checked(where, schema)


def _resolved(field: dict[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    schema = dict(field)
    if reference := schema.pop("$ref", None):
        target = dict(definitions[reference.rpartition("/")[2]])
        target.pop("title", None)
        schema = {**target, **schema}
    if members := [member for member in schema.get("anyOf", []) if member.get("type") != "null"]:
        types = {member.get("type") for member in members}
        if types == {"integer", "number"}:
            members = [{"type": "number"}]
        if len(members) == 1:
            del schema["anyOf"]
            schema = {**_resolved(members[0], definitions), **schema}
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    if schema.get("default", ...) is None:
        del schema["default"]
    return schema


def _items(where: str, items: dict[str, Any]) -> dict[str, Any]:
    items.pop("title", None)
    if "oneOf" in items:
        items = {"anyOf": items["oneOf"]}
    if set(items) not in ITEMS or items.get("type", "string") != "string":
        _refuse(where, "a list in a form is a choice among fixed strings: list[Literal[…]] or a list of an Enum")
    return items


def _checked(where: str, schema: dict[str, Any]) -> dict[str, Any]:
    allowed = ALLOWED.get(str(schema.get("type")))
    if allowed is None:
        _refuse(where, "a form holds strings, numbers, booleans and choices; nothing nested")
    if "enum" in schema and not all(isinstance(value, str) for value in schema["enum"]):
        _refuse(where, "the choices of a form are strings")
    # "enumNames: (Legacy) Display names for enum values": who writes it has clients that know no `oneOf`
    if "enumNames" in schema and len(schema["enumNames"]) != len(schema.get("enum", ())):
        _refuse(where, "enumNames names each of the choices, in their order")
    if unknown := sorted(set(schema) - allowed):
        _refuse(where, "a form cannot say {unknown!r} (the specification's restricted schema)", unknown=unknown[0])
    if schema.get("format", "date") not in FORMATS:
        _refuse(where, "a form knows the formats {formats}", formats=", ".join(sorted(FORMATS)))
    return schema


def _refuse(where: str, reason: str, **values: object) -> NoReturn:
    raise DeveloperError("{where}: " + reason, where=where, **values)
