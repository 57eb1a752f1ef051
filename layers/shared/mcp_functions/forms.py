"""A pydantic model as a `requestedSchema`, and the user's content back as the model.

"Form mode elicitation schemas are limited to flat objects with primitive properties only": what cannot be said in that
schema is refused when the form is first written, with the reason. pydantic is never imported here: whoever brings a
model has done so.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from mcp_functions.errors import DeveloperError
from mcp_functions.jsonrpc import dumps
from mcp_functions.kinds import camel, first_reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

    Form = TypeVar("Form", bound=BaseModel)

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
ITEMS = ({"type", "enum"}, {"anyOf"})


class InvalidAnswer(Exception):
    """An accepted form does not fit; the text says which field and why, for the user to read."""


class Titles:
    """Gives the choices of a Literal or Enum words for people: `Annotated[Literal["a", "b"], Titles("One", "Two")]`."""

    def __init__(self, *titles: str) -> None:
        """Take one title for each choice, in their order."""
        self._titles = titles

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:  # noqa: ANN401
        """Write `oneOf` with `const` and `title` in place of `enum`; pydantic calls it.

        Raises:
            DeveloperError: there are not as many titles as choices.

        """
        schema: dict[str, Any] = handler.resolve_ref_schema(handler(core_schema))
        choices = schema.get("enum", [schema["const"]] if "const" in schema else [])
        if len(choices) != len(self._titles):
            message = f"Titles has {len(self._titles)} titles for {len(choices)} choices"
            raise DeveloperError(message)
        titled = [{"const": choice, "title": title} for choice, title in zip(choices, self._titles, strict=True)]
        return {"type": "string", "oneOf": titled}


@lru_cache(maxsize=256)
def requested_schema(model: type[BaseModel], *, camel_case: bool = False) -> dict[str, Any]:
    """Write a model as the restricted schema of a form.

    Args:
        model: a flat pydantic model.
        camel_case: whether field names go to the wire as camelCase.

    Raises:
        DeveloperError: the model cannot be expressed; the message names the field and the reason.

    """
    if not hasattr(model, "model_json_schema"):
        message = f"{model!r}: a form is a pydantic model, with a field for each thing to fill in"
        raise DeveloperError(message)
    schema = model.model_json_schema()
    definitions = schema.get("$defs", {})
    fields = schema.get("properties", {})
    names = _wire_names(model, camel_case=camel_case)
    properties = {
        names[key]: _property(f"{model.__name__}.{key}", field, definitions, titled=_has_title(model, key))
        for key, field in fields.items()
    }
    required = [names[key] for key in schema.get("required", [])]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def accept(model: type[Form], content: object, *, camel_case: bool = False) -> Form:
    """Read what the user filled in.

    Args:
        model: the form that was shown.
        content: `ElicitResult.content` as it arrived; keys nobody asked for are ignored.
        camel_case: as when the form was written.

    Raises:
        InvalidAnswer: it does not fit the form.

    """
    if not isinstance(content, dict):
        message = "the form came back without content"
        raise InvalidAnswer(message)
    names = _keys(model, camel_case)
    known = {names[wire]: value for wire, value in content.items() if wire in names}
    try:
        return model.model_validate_json(dumps(known), strict=True)
    except ValueError as error:
        raise InvalidAnswer(first_reason(error)) from None


@lru_cache(maxsize=256)
def _keys(model: type[BaseModel], camel_case: bool) -> dict[str, str]:  # noqa: FBT001 - as above
    return {wire: key for key, wire in _wire_names(model, camel_case=camel_case).items()}


def _wire_names(model: type[BaseModel], *, camel_case: bool) -> dict[str, str]:
    keys = [_key(name, field) for name, field in model.model_fields.items()]
    return {key: camel(key) if camel_case else key for key in keys}


def _has_title(model: type[BaseModel], key: str) -> bool:
    return any(field.title is not None for name, field in model.model_fields.items() if _key(name, field) == key)


def _key(name: str, field: FieldInfo) -> str:
    alias = field.validation_alias or field.alias
    return alias if isinstance(alias, str) else name


def _property(where: str, field: dict[str, Any], definitions: Mapping[str, Any], *, titled: bool) -> dict[str, Any]:
    # "Servers MUST NOT request sensitive information through form mode": it would pass through client and model
    if where.rpartition(".")[2].lower().replace("_", "").replace("-", "") in SECRETS:
        _refuse(where, "a form is no place for secrets: elicit.url(…) leads to a page of your own")
    schema = _resolved(field, definitions)
    if not titled:
        schema.pop("title", None)  # pydantic's guess from the name; the client can guess as well
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
        _refuse(where, f"a form cannot say {unknown[0]!r} (the specification's restricted schema)")
    if schema.get("format", "date") not in FORMATS:
        _refuse(where, f"a form knows the formats {', '.join(sorted(FORMATS))}")
    return schema


def _refuse(where: str, reason: str) -> NoReturn:
    message = f"{where}: {reason}"
    raise DeveloperError(message)
