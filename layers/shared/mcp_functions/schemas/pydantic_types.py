"""A type that pydantic reads: its schema, and a strict check that lets pass what this schema allows and nothing else.

Only a handler that uses such a type imports this module, and pydantic with it.
"""

from __future__ import annotations

import re
import warnings
from functools import cache, partial
from typing import TYPE_CHECKING, Any, get_args

from pydantic import TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic.warnings import UnsupportedFieldAttributeWarning
from pydantic_core import PydanticUndefined, SchemaError

from mcp_functions.protocol.json_reader import check_size
from mcp_functions.protocol.json_writer import dumps_utf8
from mcp_functions.schemas.validation import TIMES, enforcer, with_python_patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# The name of a member in a JSON object is a string: how one says a key of another type. pydantic leaves this out.
NUMBER = {"pattern": r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$"}
KEYS: dict[object, dict[str, Any]] = {
    "integer": {"pattern": r"^-?(?:0|[1-9][0-9]*)$"},
    "number": NUMBER,
    "boolean": {"enum": ["true", "false"]},
}

# pydantic takes some values that its own schemas forbid, so `jsonschema` enforces these schemas too. Importing it costs
# tens of milliseconds of a cold start: it is asked only where an expression finds what may make a difference.
ALWAYS = ""
BOOLEANS = "true|false"  # to pydantic, true is 1 in a Literal and in an enum
CHARACTERS = r"[^\x00-\x7f]|\\"  # to pydantic, \d and \w know every script, and . most ends of lines
DECIMALS = rf"[ _]|{CHARACTERS}"  # to Python, "1_000" and " 1 " are decimals
NUMERALS = r'"[-+]?[0-9.]+"'  # to pydantic, "1" is the first day of 1970
GENEROUS = {
    "generator",
    "named-tuple",
}  # pydantic looks into one only when it is used, and takes an object for the other
BY_NAME = ("populate_by_name", "validate_by_name")  # the schema knows the alias alone
CHANGES = ("strip_whitespace", "to_lower", "to_upper")  # a string is changed before it is checked, as its author wants
CUSTOM = {"function-before", "function-plain", "function-wrap"}
BY_FIELD = ("fields", "properties", "$defs")


class Schemas(GenerateJsonSchema):
    """Writes down what pydantic checks and leaves out of its schemas: the text of a Decimal, the keys of a dict."""

    def get_decimal_pattern(self, schema: Any) -> str | None:  # noqa: ANN401 - a core schema
        """Write the pattern of a Decimal that is sent as text."""
        return self.build_decimal_pattern(schema)

    def dict_schema(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401 - a core schema
        """Write the schema of a dict, with the names that its members may have.

        Raises:
            TypeError: no name could say such a key.

        """
        written = super().dict_schema(schema)
        if names := self._names(schema.get("keys_schema")):
            # pydantic writes the pattern of a key as patternProperties, which leave all other names alone
            ((_pattern, values),) = written.pop("patternProperties", {"": written.get("additionalProperties")}).items()
            written |= {"additionalProperties": values or True, "propertyNames": names}
        return written

    def _names(self, key: Any) -> dict[str, Any] | None:  # noqa: ANN401 - a core schema
        if key is None or key["type"] in ("any", "definition-ref"):
            return None
        if key["type"] == "decimal":
            return NUMBER
        if key["type"] == "enum" and all(type(member.value) is int for member in key["members"]):
            return {"enum": [str(member.value) for member in key["members"]]}
        schema = self._enum(key) or self.generate_inner(key)
        choices = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if choices is None and schema.get("type") in KEYS:
            return KEYS[schema["type"]]
        members = schema.get("anyOf", [schema])
        if not any(member.get("type") == "string" or not member for member in members):
            message = f"a dict with keys of type {key['type']!r}: the names in a JSON object are strings"
            raise TypeError(message)
        return {name: value for name, value in schema.items() if name not in ("type", "title")}

    def _enum(self, key: Any) -> dict[str, Any] | None:  # noqa: ANN401 - a core schema
        """Write an enum in its place; pydantic would write a reference, which does not say what it is yet."""
        return self.enum_schema(key) if key["type"] == "enum" else None


def read(annotation: Any) -> tuple[dict[str, Any], Callable[[Any], Any]]:  # noqa: ANN401 - an annotation is any value
    """Read an annotation.

    Returns:
        Its schema; and what turns a JSON value into one of the type, or raises ValueError (pydantic's own, or one that
        names the keyword of the schema).

    Raises:
        TypeError: pydantic cannot write this type as JSON, or something in it means nothing where it stands.

    """
    _check_defaults(annotation)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UnsupportedFieldAttributeWarning)
            adapter: TypeAdapter[Any] = TypeAdapter(annotation)
        schema = adapter.json_schema(schema_generator=Schemas)
    except UnsupportedFieldAttributeWarning as error:
        raise TypeError(str(error).partition(". ")[0]) from None
    except SchemaError as error:
        message = f"{annotation!r} cannot be checked: {error}"
        raise TypeError(message) from None
    except PydanticUserError as error:
        # of a type that it does not know, pydantic says only how to let it through unchecked
        hint = "" if isinstance(error, PydanticSchemaGenerationError) else f": {error.message.partition(chr(10))[0]}"
        message = f"{annotation!r} cannot be written as JSON{hint}"
        raise TypeError(message) from error
    with_python_patterns(schema)  # refuses what only pydantic's engine understands
    enforce = _enforcement(schema, adapter.core_schema)

    def check(value: object) -> object:
        check_size(value)
        text = dumps_utf8(value)
        result = adapter.validate_json(text, strict=True)
        enforce(value, text)
        return result

    return schema, check


def _check_defaults(annotation: Any) -> None:  # noqa: ANN401 - an annotation is any value
    for item in get_args(annotation):
        if isinstance(item, FieldInfo) and (item.default is not PydanticUndefined or item.default_factory):
            message = "a default inside a type means nothing: write it on the parameter itself"
            raise TypeError(message)
        _check_defaults(item)


def _enforcement(schema: dict[str, Any], core: Any) -> Callable[[object, bytes], None]:  # noqa: ANN401 - a core schema
    """Make what enforces a schema where pydantic could be more generous; a validator of the author's has its way."""
    parts = list(_parts(core))
    if any(map(_is_custom, parts)):
        return lambda _value, _text: None
    expressions = {*_generous(parts), *_stricter(schema)}
    make = cache(partial(enforcer, schema))
    if ALWAYS in expressions:
        make()  # while the function starts, not in its first call
    expression = re.compile("|".join(sorted(expressions)).encode())

    def enforce(value: object, text: bytes) -> None:
        if expressions and expression.search(text):
            make()(value)

    return enforce


def _parts(tree: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - a core schema or a JSON Schema, or a part of one
    if isinstance(tree, dict):
        yield tree
        for key, member in tree.items():
            if key in BY_FIELD and isinstance(member, dict):  # its keys are names of an author's fields, no keywords
                yield from _parts(list(member.values()))
            elif key not in ("metadata", "serialization"):
                yield from _parts(member)
    if isinstance(tree, list | tuple):
        for member in tree:
            yield from _parts(member)


def _is_custom(part: dict[str, Any]) -> bool:
    if part.get("type") in CUSTOM and isinstance(function := part.get("function"), dict):
        module = str(getattr(function["function"], "__module__", ""))
        return module.partition(".")[0] not in ("pydantic", "functools")  # its own; partial() of its own
    return any(part.get(name) or part.get(f"str_{name}") for name in CHANGES)


def _generous(parts: list[dict[str, Any]]) -> Iterator[str]:
    for part in parts:
        if isinstance(path := part.get("validation_alias"), list):
            if not isinstance(path[0], list) or len(path[0]) > 1:
                message = "an AliasPath cannot be said in a schema"
                raise TypeError(message)
            yield ALWAYS
        if part.get("type") in GENEROUS or any(part.get(name) for name in BY_NAME):
            yield ALWAYS
        if part.get("type") == "decimal":
            yield DECIMALS


def _stricter(schema: dict[str, Any]) -> Iterator[str]:
    for part in _parts(schema):
        choices = part.get("enum", [part["const"]] if "const" in part else [])
        kinds = {type(choice) for choice in choices} if isinstance(choices, list) else set()
        names = part.get("propertyNames", {})
        if part.get("uniqueItems") is True or bool in kinds or "pattern" in names or "enum" in names:
            yield ALWAYS
        if int in kinds or float in kinds:
            yield BOOLEANS
        if "pattern" in part:
            yield CHARACTERS
        if part.get("format") in TIMES:
            yield NUMERALS
