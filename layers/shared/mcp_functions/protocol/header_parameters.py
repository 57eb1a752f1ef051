"""The arguments of a tool that clients repeat in headers `Mcp-Param-<name>` (server/tools, "x-mcp-header").

    inputSchema    {"properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    arguments      {"region": "eu"}
    header         Mcp-Param-Region: eu

`find` reads the annotations `x-mcp-header` of a schema when the server starts. It refuses an annotation that breaks a
rule, because clients drop a tool with such an annotation. `check` compares the headers of a call with its arguments.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias, cast

from mcp_functions.protocol.errors import HeaderMismatch
from mcp_functions.protocol.headers import encode, mismatch, read
from mcp_functions.protocol.messages import value_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mcp_functions.protocol.wire_types import JSONObject, JSONValue, Schema

    # The names of the properties that lead to a schema. None for a schema in `items` or `anyOf`, for example: its value
    # may stand at several places of the arguments, or at none.
    Path: TypeAlias = tuple[str, ...] | None

FIELD_NAME = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # "token" of RFC 9110, section 5.6.2
JSON_TYPES = ("string", "integer", "boolean")  # the types of arguments that a header may repeat
VALUE_KEYWORDS = ("enum", "const", "default", "examples")  # they hold values, and no schemas
# For each header, by its whole name in lower case, the names of the properties that lead to its argument.
HeaderParameters: TypeAlias = "Mapping[str, tuple[str, ...]]"


def find(schema: Schema) -> dict[str, tuple[str, ...]]:
    """Find the header parameters that an inputSchema declares; raise a ValueError with the rule that one breaks."""
    parameters: dict[str, tuple[str, ...]] = {}
    for path, annotated in _annotated_schemas(schema, ()):
        if path is None or path == ():  # () is the path of the root, which is no property
            raise ValueError("x-mcp-header may only stand on properties reached through `properties` alone")
        name = annotated["x-mcp-header"]
        if not isinstance(name, str) or not re.fullmatch(FIELD_NAME, name):
            raise ValueError(f"x-mcp-header on {path[-1]!r} must be an RFC 9110 token")
        if annotated.get("type") not in JSON_TYPES:
            raise ValueError(
                f"x-mcp-header on {path[-1]!r}: only strings, integers and booleans may be repeated in a header"
            )
        header = f"mcp-param-{name.lower()}"
        if header in parameters:
            raise ValueError(f"x-mcp-header names must be unique, and two properties have {name!r}")
        parameters[header] = path
    return parameters


def check(parameters: HeaderParameters, arguments: JSONObject, headers: Mapping[str, str]) -> None:
    """Check that every `Mcp-Param-*` header of a call has the value of its argument.

    Raise a HeaderMismatch that names a missing, superfluous, malformed or different header. The names of `headers` are
    in lower case.
    """
    for name, path in parameters.items():
        value = value_at(arguments, *path)
        if value is None:
            if name in headers:
                raise HeaderMismatch(message=f"The header {name} is there, but the argument is not")
            continue
        received = read(headers, name)
        if type(value) is int:  # a bool is an int, too
            # "integer values SHOULD be compared numerically": some clients write 42 as 42.0.
            received = re.sub(r"\.0+\Z", "", received)
        if received != _to_text(value):
            raise mismatch(name)


def write(parameters: HeaderParameters, arguments: JSONObject) -> dict[str, str]:
    """Return the `Mcp-Param-*` headers of a call, as a client sends them."""
    values = {name: value_at(arguments, *path) for name, path in parameters.items()}
    return {name: encode(_to_text(value)) for name, value in values.items() if value is not None}


def _to_text(value: JSONValue) -> str:
    """Write an argument as its header has it: True is "true"."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _annotated_schemas(schema: object, path: Path) -> Iterator[tuple[Path, Schema]]:
    """Yield each annotated schema, with its path, inside a schema or a list such as the value of `anyOf`."""
    if isinstance(schema, list):
        for member in schema:
            yield from _annotated_schemas(member, None)
    if not isinstance(schema, dict):
        return
    if "x-mcp-header" in schema:
        yield path, cast("Schema", schema)
    for keyword, value in schema.items():
        if keyword == "properties" and isinstance(value, dict):
            for name, member in value.items():
                path_of_member = None if path is None else (*path, name)
                yield from _annotated_schemas(member, path_of_member)
        elif keyword not in VALUE_KEYWORDS:
            yield from _annotated_schemas(value, None)
