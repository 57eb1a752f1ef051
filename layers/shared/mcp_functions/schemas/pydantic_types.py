"""A type that pydantic reads: its schema, and a strict reader that accepts exactly what this schema allows.

Only a handler that has one of these types imports this module, and pydantic with it.
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
from pydantic_core import PydanticUndefined, SchemaError, ValidationError
from pydantic_core.core_schema import any_schema

from mcp_functions.protocol.errors import shortened
from mcp_functions.protocol.json_reader import check_size
from mcp_functions.protocol.json_writer import dumps_utf8
from mcp_functions.schemas.json_types import JsonType
from mcp_functions.schemas.validation import TIMES, compile_schema, with_python_patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic_core.core_schema import CoreSchema, DecimalSchema, DictSchema

MAX_ERRORS = 1000  # pydantic can only explain all errors of a value at once, at 400 bytes each

# A key of another type is text in JSON. pydantic's schemas do not restrict this text.
NUMBER = {"pattern": r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$"}
KEYS: dict[object, dict[str, Any]] = {
    "integer": {"pattern": r"^-?(?:0|[1-9][0-9]*)$"},
    "number": NUMBER,
    "boolean": {"enum": ["true", "false"]},
}

# pydantic accepts some values that its own schemas forbid, so `jsonschema` enforces these schemas too. Its import costs
# tens of milliseconds of a cold start. So it is used only where an expression finds text that may make a difference.
ALWAYS = ""
BOOLEANS = "true|false"  # pydantic reads true as 1 in a Literal and in an enum
CHARACTERS = r"[^\x00-\x7f]|\\"  # in pydantic, \d and \w match every script, and . most ends of lines
DECIMALS = rf"[ _]|{CHARACTERS}"  # Python reads "1_000" and " 1 " as decimals
NUMERALS = r'"[-+]?[0-9.]+"'  # pydantic reads "1" as the first day of 1970
LAX_TYPES = {"generator", "named-tuple"}  # pydantic reads the first lazily, and the second from an object too
BY_NAME = ("populate_by_name", "validate_by_name")  # the schema has the alias only
CHANGES = ("strip_whitespace", "to_lower", "to_upper")  # an author's change comes before the check
CUSTOM = {"function-before", "function-plain", "function-wrap"}
WITH_NAMES = ("fields", "properties", "$defs")  # these hold schemas by an author's names


class SchemaGenerator(GenerateJsonSchema):
    """Adds two checks of pydantic that its schemas omit: the text of a Decimal, and the keys of a dict."""

    def get_decimal_pattern(self, schema: DecimalSchema) -> str | None:
        """Write the pattern of a Decimal that is sent as text."""
        return self.build_decimal_pattern(schema)

    def dict_schema(self, schema: DictSchema) -> dict[str, Any]:
        """Write the schema of a dict, with the names that its members may have.

        Raises:
            TypeError: no text could be a key of the dict.
        """
        written = super().dict_schema(schema)
        names = self._names(schema.get("keys_schema", any_schema()))
        if names:
            # pydantic writes a key's pattern as patternProperties, which do not restrict other names.
            patterns = written.pop("patternProperties", {})
            values = next(iter(patterns.values()), written.get("additionalProperties"))
            written |= {"additionalProperties": values or True, "propertyNames": names}
        return written

    def _names(self, key: CoreSchema) -> dict[str, Any] | None:
        if key["type"] in ("any", "definition-ref"):
            return None
        if key["type"] == "decimal":
            return NUMBER
        if key["type"] == "enum" and all(type(member.value) is int for member in key["members"]):
            return {"enum": [str(member.value) for member in key["members"]]}
        enum: Any = key if key["type"] == "enum" else None
        # For an enum, `generate_inner` would write a reference without its target.
        schema = self.enum_schema(enum) if enum else self.generate_inner(key)
        is_choice = "enum" in schema or "const" in schema
        if not is_choice and schema.get("type") in KEYS:
            return KEYS[schema["type"]]
        members = schema.get("anyOf", [schema])
        if not any(member.get("type") == "string" or not member for member in members):
            message = f"a dict with keys of type {key['type']!r}: the names in a JSON object are strings"
            raise TypeError(message)
        return {name: value for name, value in schema.items() if name not in ("type", "title")}


def read_type(annotation: object) -> JsonType:
    """Read an annotation.

    Raises:
        TypeError: pydantic cannot write this type as JSON, or an option in it has no effect there.
    """
    _check_defaults(annotation)
    adapter, schema = _adapt(annotation)
    with_python_patterns(schema)  # refuses a pattern that only pydantic's engine understands
    enforce = _enforcement(schema, adapter.core_schema)

    def read(value: object) -> object:
        check_size(value)
        text = dumps_utf8(value)
        try:
            result = adapter.validate_json(text, strict=True)
        except ValidationError as error:
            raise ValueError(_first_reason(error)) from None
        enforce(value, text)
        return result

    return JsonType(schema, read)


def _adapt(annotation: object) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UnsupportedFieldAttributeWarning)
            adapter: TypeAdapter[Any] = TypeAdapter(annotation)  # type: ignore[arg-type]  # any annotation
        return adapter, adapter.json_schema(schema_generator=SchemaGenerator)
    except UnsupportedFieldAttributeWarning as error:
        raise TypeError(str(error).partition(". ")[0]) from None
    except SchemaError as error:
        message = f"{annotation!r} cannot be checked: {error}"
        raise TypeError(message) from None
    except PydanticSchemaGenerationError as error:  # its text only advises not to check the type
        message = f"{annotation!r} cannot be written as JSON"
        raise TypeError(message) from error
    except PydanticUserError as error:
        message = f"{annotation!r} cannot be written as JSON: {error.message.partition(chr(10))[0]}"
        raise TypeError(message) from error


def _check_defaults(annotation: object) -> None:
    for item in get_args(annotation):
        if isinstance(item, FieldInfo) and (item.default is not PydanticUndefined or item.default_factory):
            message = "a default inside a type means nothing: write it on the parameter itself"
            raise TypeError(message)
        _check_defaults(item)


def _first_reason(error: ValidationError) -> str:
    """Give the place and the reason of the first error, without the value."""
    if error.error_count() > MAX_ERRORS:
        return f"does not fit in {error.error_count()} places"
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = shortened(".".join(str(part) for part in first["loc"]))
    reason = first["msg"].removeprefix("Input ").removeprefix("Value error, ")
    return f"{place} {reason}" if place else reason


def _enforcement(schema: dict[str, Any], core_schema: object) -> Callable[[object, bytes], None]:
    """Return a function that enforces a schema where pydantic may accept more; an author's own validator decides."""
    parts = list(_parts(core_schema))
    expressions = set()
    if not any(map(_is_custom, parts)):
        expressions = {*_lax_reads(parts), *_strict_keywords(schema)}
    compile_once = cache(partial(compile_schema, schema))
    if ALWAYS in expressions:
        compile_once()  # while the function starts, and not in its first call
    expression = re.compile("|".join(sorted(expressions)).encode())

    def enforce(value: object, text: bytes) -> None:
        if expressions and expression.search(text):
            compile_once()(value)

    return enforce


def _parts(tree: object) -> Iterator[dict[str, Any]]:
    """List the objects in a core schema or a JSON Schema."""
    if isinstance(tree, dict):
        yield tree
        for key, member in tree.items():
            if key in WITH_NAMES and isinstance(member, dict):
                yield from _parts(list(member.values()))
            elif key not in ("metadata", "serialization"):
                yield from _parts(member)
    if isinstance(tree, list | tuple):
        for member in tree:
            yield from _parts(member)


def _is_custom(part: dict[str, Any]) -> bool:
    """Return True for a validator that an author wrote, or for an option that changes strings."""
    function = part.get("function")
    if part.get("type") in CUSTOM and isinstance(function, dict):
        module = str(getattr(function["function"], "__module__", ""))
        return module.partition(".")[0] not in ("pydantic", "functools")  # pydantic wraps its own in `partial`
    return any(part.get(name) or part.get(f"str_{name}") for name in CHANGES)


def _lax_reads(parts: list[dict[str, Any]]) -> Iterator[str]:
    """List expressions for values that pydantic reads, though its schema does not describe them."""
    for part in parts:
        path = part.get("validation_alias")
        if isinstance(path, list):
            if not isinstance(path[0], list) or len(path[0]) > 1:
                message = "a schema cannot describe an AliasPath"
                raise TypeError(message)
            yield ALWAYS
        if part.get("type") in LAX_TYPES or any(part.get(name) for name in BY_NAME):
            yield ALWAYS
        if part.get("type") == "decimal":
            yield DECIMALS


def _strict_keywords(schema: dict[str, Any]) -> Iterator[str]:
    """List expressions for values that a keyword of the schema forbids, though pydantic may read them."""
    for part in _parts(schema):
        choices = part.get("enum", [part["const"]] if "const" in part else [])
        types = {type(choice) for choice in choices} if isinstance(choices, list) else set()
        names = part.get("propertyNames", {})
        if part.get("uniqueItems") is True or bool in types or "pattern" in names or "enum" in names:
            yield ALWAYS
        if int in types or float in types:
            yield BOOLEANS
        if "pattern" in part:
            yield CHARACTERS
        if part.get("format") in TIMES:
            yield NUMERALS
