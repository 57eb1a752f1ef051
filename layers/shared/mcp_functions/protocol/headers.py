"""What a request must carry before anybody acts on it: `_meta`, headers that repeat the body, a revision we speak.

Every Lambda that reads a body checks this again, also behind the front door: "servers that process the message body
MUST reject requests where the values specified in the headers do not match". The body is the truth; the order is the
specification's.
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

    from mcp_functions.protocol.wire_types import JSONRPCRequest

HeaderParameters: TypeAlias = (
    "Mapping[str, tuple[tuple[str, ...], str]]"  # header to path of a property, and its JSON type
)

PREFIX, SUFFIX = "=?base64?", "?="
FIELD_NAME = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
INTEGRAL = r"^(-?\d+)\.0+\Z"
DATA = ("enum", "const", "default", "examples")  # values in a schema, not schemas


def admit(message: JSONRPCRequest, headers: Mapping[str, str]) -> None:
    """Check that a request may be read at all.

    Args:
        message: one JSON-RPC request.
        headers: of the HTTP request, names in lower case.

    Raises:
        InvalidParams: `_meta` lacks what every request must carry (basic, "Request metadata").
        HeaderMismatch: a header is missing or says something else than the body (transports, "Request headers").
        UnsupportedProtocolVersion: headers and body agree on a revision this server does not speak (versioning).

    """
    check_repeated(message, headers)
    method = message["method"]
    version = _check_meta(message) if method != "initialize" else _check_era(message)
    names = method in CALLS and isinstance(message["params"].get(CALLS[method]), str)
    for name in ("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name")[: 3 if names else 2]:
        if name.lower() not in headers:
            text = f"The header {name} is missing"
            raise HeaderMismatch(text)
    if version not in SUPPORTED_VERSIONS:
        raise UnsupportedProtocolVersion(version, SUPPORTED_VERSIONS)


def check_repeated(message: Mapping[str, Any], headers: Mapping[str, str]) -> None:
    """Check that no header contradicts the body, of whatever revision that is; a missing header contradicts nothing.

    "servers that process the message body MUST reject requests where the values specified in the headers do not match
    the values in the request body" (transports): a router before this server may have believed the header.

    Args:
        message: one JSON-RPC message; a response repeats nothing.
        headers: of the HTTP request, names in lower case.

    Raises:
        HeaderMismatch: a header is malformed or says something else than the body.

    """
    params = message.get("params")
    repeated = {"Mcp-Method": message.get("method")}
    if isinstance(params, dict):
        meta = params.get("_meta")
        repeated["MCP-Protocol-Version"] = meta.get(META_PROTOCOL_VERSION) if isinstance(meta, dict) else None
        repeated["Mcp-Name"] = _called(message.get("method"), params)
    for name, value in repeated.items():
        received = headers.get(name.lower())
        if isinstance(value, str) and received is not None:
            _check_equal(name, received, value)


def _called(method: object, params: Mapping[str, Any]) -> object:
    """Read the name that a request calls or completes; None if it names nothing."""
    if method == "completion/complete":
        ref = params.get("ref")
        return ref.get("name", ref.get("uri")) if isinstance(ref, dict) else None
    return params.get(CALLS[method]) if isinstance(method, str) and method in CALLS else None


def admit_task(message: JSONRPCRequest, headers: Mapping[str, str]) -> None:
    """Check that a request about a task names it in its header too (extension io.modelcontextprotocol/tasks).

    Apart from `admit`, because without the extension these methods do not exist, whatever their headers say.

    Raises:
        HeaderMismatch: `Mcp-Name` is missing, or says something else than `params.taskId`.

    """
    name = message["params"].get(TASKS[message["method"]])
    if isinstance(name, str):
        _check_equal("Mcp-Name", headers.get("mcp-name"), name)


def decode(value: str) -> str:
    """Read a header value, which holds what a header cannot say as `=?base64?…?=`.

    Raises:
        ValueError: it is marked as base64 and is not (strictly, with padding), or not UTF-8.

    """
    value = value.strip(" \t")
    if not (value.startswith(PREFIX) and value.endswith(SUFFIX) and len(value) >= len(PREFIX) + len(SUFFIX)):
        return value
    encoded = value[len(PREFIX) : -len(SUFFIX)]
    decoded = binascii.a2b_base64(encoded, strict_mode=True)
    if binascii.b2a_base64(decoded, newline=False).decode() != encoded:
        raise ValueError(encoded)
    return decoded.decode()


def encode(value: str) -> str:
    """Write a header value, as `decode` reads it: in base64, if it could not stand as it is."""
    if value.isascii() and value.isprintable() and value == value.strip() and not value.startswith(PREFIX):
        return value
    return f"{PREFIX}{binascii.b2a_base64(value.encode(), newline=False).decode()}{SUFFIX}"


def repeat(found: HeaderParameters, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Write the `Mcp-Param-*` headers of a call, as `check_parameters` wants them.

    Args:
        found: what `declared` found in the schema.
        arguments: of the call.

    """
    values = {name: _at(path, arguments) for name, (path, _type) in found.items()}
    return {name: encode(_written(value)) for name, value in values.items() if value is not None}


def declared(schema: Mapping[str, Any]) -> dict[str, tuple[tuple[str, ...], str]]:
    """Find the arguments that clients repeat in headers (server/tools, "x-mcp-header").

    Args:
        schema: an inputSchema.

    Returns:
        Lower-case header name to (path of the property, its JSON type).

    Raises:
        ValueError: an annotation breaks a rule, for which a client would drop the tool; the message names the rule.

    """
    found = dict(_declared(schema, ()))
    if len(found) != _mentions(schema):
        message = (
            "x-mcp-header names must be unique, and may only stand on properties reached through `properties` alone"
        )
        raise ValueError(message)
    return found


def check_parameters(found: HeaderParameters, arguments: Mapping[str, Any], headers: Mapping[str, str]) -> None:
    """Check that every `Mcp-Param-*` header says what the argument says.

    Args:
        found: what `declared` found in the schema.
        arguments: of the call.
        headers: of the HTTP request, names in lower case.

    Raises:
        HeaderMismatch: one is missing, superfluous, malformed, or different; the message names the header.

    """
    for name, (path, type_) in found.items():
        value = _at(path, arguments)
        if value is None and name in headers:
            text = f"The header {name} is there, but the argument is not"
            raise HeaderMismatch(text)
        if value is not None:
            _check_equal(name, headers.get(name), _written(value), number=type_ == "integer")


def check_sent_parameters(found: HeaderParameters, arguments: Mapping[str, Any], headers: Mapping[str, str]) -> None:
    """Check those that were sent: a client of 2025 need not send any.

    Raises:
        HeaderMismatch: one is superfluous, malformed, or different; the message names the header.

    """
    check_parameters({name: found[name] for name in found if name in headers}, arguments, headers)


def _at(path: tuple[str, ...], arguments: Any) -> Any:  # noqa: ANN401 - JSON is any value
    value = arguments
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _declared(schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, tuple[tuple[str, ...], str]]]:
    properties = schema.get("properties")
    for key, member in properties.items() if isinstance(properties, dict) else ():
        if not isinstance(member, dict):
            continue
        if (name := member.get("x-mcp-header")) is not None:
            if not isinstance(name, str) or not re.fullmatch(FIELD_NAME, name):
                message = f"x-mcp-header on {key!r} must be an RFC 9110 token"
                raise ValueError(message)
            if member.get("type") not in ("string", "integer", "boolean"):
                message = f"x-mcp-header on {key!r}: only strings, integers and booleans may be repeated in a header"
                raise ValueError(message)
            yield f"mcp-param-{name.lower()}", ((*path, key), member["type"])
        yield from _declared(member, (*path, key))


def _mentions(schema: object) -> int:
    match schema:
        case dict():
            properties = schema.get("properties")
            named = sum(map(_mentions, properties.values())) if isinstance(properties, dict) else 0
            rest = sum(_mentions(value) for key, value in schema.items() if key not in ("properties", *DATA))
            return ("x-mcp-header" in schema) + named + rest
        case list():
            return sum(map(_mentions, schema))
    return 0


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_era(message: JSONRPCRequest) -> str:
    try:
        return _check_meta(message)
    except InvalidParams:
        # A client of an earlier revision. "SHOULD name the versions it supports in any error it returns to initialize"
        requested = message["params"].get("protocolVersion")
        raise UnsupportedProtocolVersion(str(requested), SUPPORTED_VERSIONS) from None


def _check_meta(message: JSONRPCRequest) -> str:
    meta = message["params"].get("_meta")
    if not isinstance(meta, dict):
        text = f"params must hold _meta, with {META_PROTOCOL_VERSION} and {META_CLIENT_CAPABILITIES}"
    elif not isinstance(version := meta.get(META_PROTOCOL_VERSION), str):
        text = f"params._meta must hold {META_PROTOCOL_VERSION}, a string"
    elif not isinstance(meta.get(META_CLIENT_CAPABILITIES), dict):
        text = f"params._meta must hold {META_CLIENT_CAPABILITIES}, an object"
    else:
        return version
    raise InvalidParams(text)


def _check_equal(name: str, value: str | None, expected: str, *, number: bool = False) -> None:
    if value is None:
        text = f"The header {name} is missing"
        raise HeaderMismatch(text)
    try:
        decoded = decode(value)
    except ValueError:
        text = f"The header {name} is not valid base64"
        raise HeaderMismatch(text) from None
    # "integer values SHOULD be compared numerically": 42 and 42.0 are one number
    if decoded != expected and not (number and _integral(decoded) == expected):
        text = f"The header {name} does not say what the body says"
        raise HeaderMismatch(text)


def _integral(text: str) -> str:
    return re.sub(INTEGRAL, r"\1", text)
