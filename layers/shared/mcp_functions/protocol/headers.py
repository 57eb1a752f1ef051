"""The headers that repeat parts of a request's body, and the `_meta` that every request has (basic/transports).

    header                  repeats                                  required
    MCP-Protocol-Version    the protocol version in `_meta`          always
    Mcp-Method              `method`                                 always
    Mcp-Name                `params.name` or `params.uri`            in a call
    Mcp-Param-<name>        an argument (see `header_parameters`)    if the argument is there

A router reads the headers, and a Lambda reads the body. So every Lambda compares the two: "servers that process the
message body MUST reject requests where the values specified in the headers do not match the values in the request
body". A header has a text as it is, or as `=?base64?…?=` if a header cannot hold the text.
"""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.constants import (
    CALL_METHODS,
    META_CLIENT_CAPABILITIES,
    META_PROTOCOL_VERSION,
    SUPPORTED_VERSIONS,
    TASK_METHODS,
)
from mcp_functions.protocol.errors import HeaderMismatch, InvalidParams, UnsupportedProtocolVersion
from mcp_functions.protocol.messages import value_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.wire_types import JSONRPCRequest

VERSION_HEADER = "MCP-Protocol-Version"
METHOD_HEADER = "Mcp-Method"
NAME_HEADER = "Mcp-Name"
# These two surround the base64 of a text that a header cannot hold as it is.
PREFIX = "=?base64?"
SUFFIX = "?="


def check_request(message: JSONRPCRequest, headers: Mapping[str, str]) -> None:
    """Check the headers and the `_meta` of a request.

    If several checks fail, the client gets the error of the first, so their order is a part of the behaviour.

    Args:
        message: one JSON-RPC request.
        headers: the headers of the HTTP request, with names in lower case.

    Raises:
        InvalidParams: `_meta` lacks a required member (basic, "Request metadata").
        HeaderMismatch: a header is missing, or differs from the body (basic/transports, "Request headers").
        UnsupportedProtocolVersion: this server does not implement the revision (basic/versioning).
    """
    check_no_contradiction(message, headers)
    version = _requested_version(message)
    required = [VERSION_HEADER, METHOD_HEADER]
    # If the name is missing or is not a string, the search for the handler refuses the call, with InvalidParams.
    if message["method"] in CALL_METHODS and isinstance(_name_in(message), str):
        required.append(NAME_HEADER)
    for header in required:
        if header.lower() not in headers:
            raise HeaderMismatch(message=f"The header {header} is missing")
    if version not in SUPPORTED_VERSIONS:
        raise UnsupportedProtocolVersion(version, SUPPORTED_VERSIONS)


def check_no_contradiction(message: Mapping[str, Any], headers: Mapping[str, str]) -> None:
    """Check that no header contradicts the body, whatever revision the client speaks. A header may be missing.

    Args:
        message: a JSON-RPC message. A notification needs no `_meta`.
        headers: the headers of the HTTP request, with names in lower case.

    Raises:
        HeaderMismatch: a header is malformed, or differs from the body.
    """
    expected = {
        VERSION_HEADER: value_at(message, "params", "_meta", META_PROTOCOL_VERSION),
        METHOD_HEADER: message.get("method"),
        NAME_HEADER: _name_in(message),
    }
    for header, value in expected.items():
        if isinstance(value, str) and header.lower() in headers:
            check_value(headers, header, value)


def check_task_id(message: JSONRPCRequest, headers: Mapping[str, str]) -> None:
    """Check that a request about a task repeats the task's id (extension io.modelcontextprotocol/tasks).

    This is not a part of `check_request`: without the extension these methods do not exist, whatever the headers say.

    Raises:
        HeaderMismatch: `Mcp-Name` is missing, or differs from `params.taskId`.
    """
    parameter = TASK_METHODS[message["method"]]
    task_id = message["params"].get(parameter)
    if isinstance(task_id, str):
        check_value(headers, NAME_HEADER, task_id)


def _requested_version(message: JSONRPCRequest) -> str:
    """Return the protocol version in a request's `_meta`.

    Raises:
        InvalidParams: `_meta` lacks a required member.
        UnsupportedProtocolVersion: a client of an earlier revision sent `initialize`.
    """
    params = message["params"]
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        text = f"params must hold _meta, with {META_PROTOCOL_VERSION} and {META_CLIENT_CAPABILITIES}"
    elif not isinstance(meta.get(META_PROTOCOL_VERSION), str):
        text = f"params._meta must hold {META_PROTOCOL_VERSION}, a string"
    elif not isinstance(meta.get(META_CLIENT_CAPABILITIES), dict):
        text = f"params._meta must hold {META_CLIENT_CAPABILITIES}, an object"
    else:
        return str(meta[META_PROTOCOL_VERSION])
    if message["method"] == "initialize":
        # Basic/versioning: a server "SHOULD name the versions it supports in any error it returns to initialize".
        raise UnsupportedProtocolVersion(str(params.get("protocolVersion")), SUPPORTED_VERSIONS)
    raise InvalidParams(text)


def _name_in(message: Mapping[str, Any]) -> object:
    """Return the name or URI that a request calls or completes; None if it has none."""
    method = message.get("method")
    if method == "completion/complete":
        return value_at(message, "params", "ref", "name") or value_at(message, "params", "ref", "uri")
    if isinstance(method, str) and method in CALL_METHODS:
        return value_at(message, "params", CALL_METHODS[method])
    return None


def check_value(headers: Mapping[str, str], name: str, expected: str) -> None:
    """Check that a header has the value that the body has.

    Args:
        headers: the headers of the HTTP request, with names in lower case.
        name: the name of the header, as error messages spell it.
        expected: the value in the body.

    Raises:
        HeaderMismatch: the header is missing, malformed or different.
    """
    if read_value(headers, name) != expected:
        raise mismatch(name)


def read_value(headers: Mapping[str, str], name: str) -> str:
    """Return the decoded value of a header.

    Raises:
        HeaderMismatch: the header is missing or malformed.
    """
    value = headers.get(name.lower())
    if value is None:
        raise HeaderMismatch(message=f"The header {name} is missing")
    try:
        return decode(value)
    except ValueError:  # hidden, because its text quotes the value
        raise HeaderMismatch(message=f"The header {name} is not valid base64") from None


def mismatch(name: str) -> HeaderMismatch:
    """Return the error of a header that differs from the body. It quotes neither of the two values."""
    return HeaderMismatch(message=f"The header {name} does not say what the body says")


def decode(value: str) -> str:
    """Decode the value of a header: `=?base64?4pyT?=` is "✓", and a value without the marks is the text itself.

    Raises:
        ValueError: the value is marked as base64, but is not strict base64 of UTF-8.
    """
    value = value.strip(" \t")
    is_marked = value.startswith(PREFIX) and value.endswith(SUFFIX)
    if not is_marked or len(value) < len(PREFIX) + len(SUFFIX):  # in "=?base64?=" both marks share one "?"
        return value
    encoded = value[len(PREFIX) : -len(SUFFIX)]
    decoded = binascii.a2b_base64(encoded, strict_mode=True)
    # The decoder ignores unused bits in the last character, so several texts decode alike. Only one of them is valid.
    if binascii.b2a_base64(decoded, newline=False).decode() != encoded:
        raise ValueError(encoded)
    return decoded.decode()


def encode(value: str) -> str:
    """Encode a text for `decode`: as base64 if a header cannot hold it."""
    is_plain = value.isascii() and value.isprintable() and value == value.strip()
    if is_plain and not value.startswith(PREFIX):
        return value
    encoded = binascii.b2a_base64(value.encode(), newline=False).decode()
    return f"{PREFIX}{encoded}{SUFFIX}"
