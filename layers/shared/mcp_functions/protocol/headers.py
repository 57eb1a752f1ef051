"""The checks of a request's headers and `_meta`, in the order of the specification (basic/transports).

A client repeats parts of the body in headers, so that a router can read them. Every Lambda that reads a body compares
the two again: "servers that process the message body MUST reject requests where the values specified in the headers do
not match the values in the request body".
"""

from __future__ import annotations

import binascii
import re
from typing import TYPE_CHECKING, Any, TypeAlias

from mcp_functions.protocol.constants import (
    CALLS,
    META_CLIENT_CAPABILITIES,
    META_PROTOCOL_VERSION,
    SUPPORTED_VERSIONS,
    TASKS,
)
from mcp_functions.protocol.errors import HeaderMismatch, InvalidParams, UnsupportedProtocolVersion

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mcp_functions.protocol.wire_types import JSONRPCRequest, JSONValue

# By lower-case name of a header: the path of the argument that it repeats, and the argument's JSON type.
HeaderParameters: TypeAlias = "Mapping[str, tuple[tuple[str, ...], str]]"

PREFIX, SUFFIX = "=?base64?", "?="
FIELD_NAME = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # "token" of RFC 9110, section 5.6.2
WHOLE_NUMBER = r"^(-?\d+)\.0+\Z"
NOT_SCHEMAS = ("properties", "enum", "const", "default", "examples")  # keywords whose value is not one schema


def admit(message: JSONRPCRequest, headers: Mapping[str, str]) -> None:
    """Check the headers and the `_meta` that every request must have.

    Args:
        message: one JSON-RPC request.
        headers: of the HTTP request, names in lower case.

    Raises:
        InvalidParams: `_meta` lacks a required member (basic, "Request metadata").
        HeaderMismatch: a header is missing, or differs from the body (basic/transports, "Request headers").
        UnsupportedProtocolVersion: this server does not implement the revision (basic/versioning).

    """
    check_repeated(message, headers)
    method, params = message["method"], message["params"]
    version = _requested_version(message)
    required = ["MCP-Protocol-Version", "Mcp-Method"]
    if method in CALLS and isinstance(params.get(CALLS[method]), str):
        required.append("Mcp-Name")
    for name in required:
        if name.lower() not in headers:
            raise HeaderMismatch(message=f"The header {name} is missing")
    if version not in SUPPORTED_VERSIONS:
        raise UnsupportedProtocolVersion(version, SUPPORTED_VERSIONS)


def check_repeated(message: Mapping[str, Any], headers: Mapping[str, str]) -> None:
    """Check that no header contradicts the body, in any revision. A missing header contradicts nothing.

    Raises:
        HeaderMismatch: a header is malformed, or differs from the body.

    """
    method, params = message.get("method"), message.get("params")
    repeated = {"Mcp-Method": method}
    if isinstance(params, dict):
        meta = params.get("_meta")
        repeated["MCP-Protocol-Version"] = meta.get(META_PROTOCOL_VERSION) if isinstance(meta, dict) else None
        repeated["Mcp-Name"] = _name_in(method, params)
    for name, value in repeated.items():
        received = headers.get(name.lower())
        if isinstance(value, str) and received is not None:
            _check_equal(name, received, value)


def admit_task(message: JSONRPCRequest, headers: Mapping[str, str]) -> None:
    """Check that a request about a task repeats the task's id (extension io.modelcontextprotocol/tasks).

    This is not a part of `admit`: without the extension these methods do not exist, whatever the headers say.

    Raises:
        HeaderMismatch: `Mcp-Name` is missing, or differs from `params.taskId`.

    """
    task_id = message["params"].get(TASKS[message["method"]])
    if isinstance(task_id, str):
        _check_equal("Mcp-Name", headers.get("mcp-name"), task_id)


def decode(value: str) -> str:
    """Decode a header value; `=?base64?…?=` holds text that a header cannot.

    Raises:
        ValueError: the value is marked as base64, but is not strict base64 of UTF-8.

    """
    value = value.strip(" \t")
    is_marked = value.startswith(PREFIX) and value.endswith(SUFFIX) and len(value) >= len(PREFIX) + len(SUFFIX)
    if not is_marked:
        return value
    encoded = value[len(PREFIX) : -len(SUFFIX)]
    decoded = binascii.a2b_base64(encoded, strict_mode=True)
    if binascii.b2a_base64(decoded, newline=False).decode() != encoded:
        raise ValueError(encoded)
    return decoded.decode()


def encode(value: str) -> str:
    """Encode a header value for `decode`: as base64 if a header cannot hold it."""
    is_plain = value.isascii() and value.isprintable() and value == value.strip()
    if is_plain and not value.startswith(PREFIX):
        return value
    return f"{PREFIX}{binascii.b2a_base64(value.encode(), newline=False).decode()}{SUFFIX}"


def repeat(parameters: HeaderParameters, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the `Mcp-Param-*` headers of a call, as a client sends them."""
    values = {name: _at(path, arguments) for name, (path, _type) in parameters.items()}
    return {name: encode(_to_text(value)) for name, value in values.items() if value is not None}


def declared(schema: Mapping[str, Any]) -> dict[str, tuple[tuple[str, ...], str]]:
    """Find the arguments that clients repeat in headers (server/tools, "x-mcp-header").

    Args:
        schema: an inputSchema.

    Returns:
        Lower-case header name to (path of the property, its JSON type).

    Raises:
        ValueError: an annotation breaks a rule, so that clients would drop the tool. The message has the rule.

    """
    parameters = dict(_annotated(schema, ()))
    if len(parameters) != _count_annotations(schema):
        message = (
            "x-mcp-header names must be unique, and may only stand on properties reached through `properties` alone"
        )
        raise ValueError(message)
    return parameters


def check_parameters(parameters: HeaderParameters, arguments: Mapping[str, Any], headers: Mapping[str, str]) -> None:
    """Check that every `Mcp-Param-*` header has the value of its argument.

    Raises:
        HeaderMismatch: a header is missing, superfluous, malformed, or different. The message names it.

    """
    for name, (path, type_) in parameters.items():
        value = _at(path, arguments)
        if value is not None:
            _check_equal(name, headers.get(name), _to_text(value), is_integer=type_ == "integer")
        elif name in headers:
            raise HeaderMismatch(message=f"The header {name} is there, but the argument is not")


def check_sent_parameters(
    parameters: HeaderParameters, arguments: Mapping[str, Any], headers: Mapping[str, str]
) -> None:
    """Check only the headers that were sent, because a client of 2025 need not send any.

    Raises:
        HeaderMismatch: a header is superfluous, malformed, or different. The message names it.

    """
    sent = {name: parameters[name] for name in parameters if name in headers}
    check_parameters(sent, arguments, headers)


def _requested_version(message: JSONRPCRequest) -> str:
    try:
        return _check_meta(message)
    except InvalidParams:
        if message["method"] != "initialize":
            raise
        # A client of an earlier revision sent this. Basic/versioning: a server "SHOULD name the versions it supports in
        # any error it returns to initialize".
        requested = message["params"].get("protocolVersion")
        raise UnsupportedProtocolVersion(str(requested), SUPPORTED_VERSIONS) from None


def _check_meta(message: JSONRPCRequest) -> str:
    meta = message["params"].get("_meta")
    if not isinstance(meta, dict):
        text = f"params must hold _meta, with {META_PROTOCOL_VERSION} and {META_CLIENT_CAPABILITIES}"
        raise InvalidParams(text)
    version = meta.get(META_PROTOCOL_VERSION)
    if not isinstance(version, str):
        raise InvalidParams(message=f"params._meta must hold {META_PROTOCOL_VERSION}, a string")
    if not isinstance(meta.get(META_CLIENT_CAPABILITIES), dict):
        raise InvalidParams(message=f"params._meta must hold {META_CLIENT_CAPABILITIES}, an object")
    return version


def _name_in(method: object, params: Mapping[str, Any]) -> object:
    """Return the name that a request calls or completes; None if it has none."""
    if method == "completion/complete":
        ref = params.get("ref")
        return ref.get("name", ref.get("uri")) if isinstance(ref, dict) else None
    if isinstance(method, str) and method in CALLS:
        return params.get(CALLS[method])
    return None


def _check_equal(name: str, value: str | None, expected: str, *, is_integer: bool = False) -> None:
    if value is None:
        raise HeaderMismatch(message=f"The header {name} is missing")
    try:
        decoded = decode(value)
    except ValueError:
        raise HeaderMismatch(message=f"The header {name} is not valid base64") from None
    if is_integer and decoded != expected:
        # Server/tools: "integer values SHOULD be compared numerically", so 42.0 equals 42.
        decoded = re.sub(WHOLE_NUMBER, r"\1", decoded)
    if decoded != expected:
        raise HeaderMismatch(message=f"The header {name} does not say what the body says")


def _at(path: tuple[str, ...], arguments: JSONValue) -> JSONValue:
    value = arguments
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _to_text(value: JSONValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _annotated(schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, tuple[tuple[str, ...], str]]]:
    properties = schema.get("properties")
    for key, member in properties.items() if isinstance(properties, dict) else ():
        if not isinstance(member, dict):
            continue
        name = member.get("x-mcp-header")
        if name is not None:
            _check_annotation(key, name, member.get("type"))
            yield f"mcp-param-{name.lower()}", ((*path, key), member["type"])
        yield from _annotated(member, (*path, key))


def _check_annotation(key: str, name: object, type_: object) -> None:
    if not isinstance(name, str) or not re.fullmatch(FIELD_NAME, name):
        message = f"x-mcp-header on {key!r} must be an RFC 9110 token"
        raise ValueError(message)
    if type_ not in ("string", "integer", "boolean"):
        message = f"x-mcp-header on {key!r}: only strings, integers and booleans may be repeated in a header"
        raise ValueError(message)


def _count_annotations(schema: object) -> int:
    """Count the annotations anywhere in a schema, also where they are not allowed."""
    if isinstance(schema, list):
        return sum(map(_count_annotations, schema))
    if not isinstance(schema, dict):
        return 0
    properties = schema.get("properties")
    schemas = [value for key, value in schema.items() if key not in NOT_SCHEMAS]
    if isinstance(properties, dict):
        schemas += properties.values()
    return ("x-mcp-header" in schema) + sum(map(_count_annotations, schemas))
