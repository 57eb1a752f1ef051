"""The headers that repeat parts of a request's body, and the `_meta` that every request has (basic/transports).

    header                  repeats                                  required
    MCP-Protocol-Version    the protocol version in `_meta`          always
    Mcp-Method              `method`                                 always
    Mcp-Name                `params.name` or `params.uri`            in a call
    Mcp-Param-<name>        an argument (see `header_parameters`)    if the argument is there

A router may read only the headers, and a Lambda function reads the body. So every function compares the two: "servers
that process the message body MUST reject requests where the values specified in the headers do not match the values in
the request body". A text that a header cannot hold is sent in base64: "✓" is `=?base64?4pyT?=`.
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
BASE64_PREFIX = "=?base64?"
BASE64_SUFFIX = "?="


def check_request(message: JSONRPCRequest, headers: Mapping[str, str]) -> None:
    """Check the headers and the `_meta` of a request.

    The order of the checks decides which error the client gets if several fail.

    Args:
        message: one JSON-RPC request.
        headers: the headers of the HTTP request, with names in lower case.

    Raises:
        InvalidParams: `_meta` lacks a required member (basic, "Request metadata").
        HeaderMismatch: a header is missing, or differs from the body (basic/transports, "Request headers").
        UnsupportedProtocolVersion: this server does not implement the revision (basic/versioning).
    """
    check_no_contradiction(message, headers)
    _check_meta(message)
    required = [VERSION_HEADER, METHOD_HEADER]
    # A call without a name, or whose name is no string, gets InvalidParams from `handlers.lookup`.
    if message["method"] in CALL_METHODS and isinstance(_name_in(message), str):
        required.append(NAME_HEADER)
    for header in required:
        if header.lower() not in headers:
            raise HeaderMismatch(message=f"The header {header} is missing")
    version = message["params"]["_meta"][META_PROTOCOL_VERSION]
    if version not in SUPPORTED_VERSIONS:
        raise UnsupportedProtocolVersion(version, SUPPORTED_VERSIONS)


def check_no_contradiction(message: Mapping[str, Any], headers: Mapping[str, str]) -> None:
    """Check that no header contradicts the body. A header may be missing.

    Clients of earlier revisions are checked too, and notifications, which need no `_meta`.

    Args:
        message: a JSON-RPC message.
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
    """Check that the header `Mcp-Name` of a request about a task repeats the id of the task (extension tasks).

    `check_request` does not check this header, because without the extension these methods do not exist.

    Raises:
        HeaderMismatch: `Mcp-Name` is missing, or differs from `params.taskId`.
    """
    parameter = TASK_METHODS[message["method"]]
    task_id = message["params"].get(parameter)
    if isinstance(task_id, str):
        check_value(headers, NAME_HEADER, task_id)


def _check_meta(message: JSONRPCRequest) -> None:
    """Check the members that every `_meta` must have.

    Raises:
        InvalidParams: `_meta` lacks one of them.
        UnsupportedProtocolVersion: the same in `initialize`, a method of earlier revisions.
    """
    params = message["params"]
    fault = _meta_fault(params.get("_meta"))
    if not fault:
        return
    if message["method"] == "initialize":
        # Basic/versioning: a server "SHOULD name the versions it supports in any error it returns to initialize".
        raise UnsupportedProtocolVersion(str(params.get("protocolVersion")), SUPPORTED_VERSIONS)
    raise InvalidParams(fault)


def _meta_fault(meta: object) -> str:
    """Say what is wrong with a `_meta`; "" if nothing is."""
    if not isinstance(meta, dict):
        return f"params must hold _meta, with {META_PROTOCOL_VERSION} and {META_CLIENT_CAPABILITIES}"
    if not isinstance(meta.get(META_PROTOCOL_VERSION), str):
        return f"params._meta must hold {META_PROTOCOL_VERSION}, a string"
    if not isinstance(meta.get(META_CLIENT_CAPABILITIES), dict):
        return f"params._meta must hold {META_CLIENT_CAPABILITIES}, an object"
    return ""


def _name_in(message: Mapping[str, Any]) -> object:
    """Return the name or URI in a call or a completion; None for other messages, or if it is missing."""
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
    except ValueError:  # `from None`, because the text of this error quotes the value
        raise HeaderMismatch(message=f"The header {name} is not valid base64") from None


def mismatch(name: str) -> HeaderMismatch:
    """Return the error for a header that differs from the body. Its text quotes neither of the two values."""
    return HeaderMismatch(message=f"The header {name} does not say what the body says")


def decode(value: str) -> str:
    """Decode the value of a header: `=?base64?4pyT?=` is "✓", and a value without prefix and suffix is the text itself.

    Raises:
        ValueError: the value has the prefix and the suffix, but no strict base64 of UTF-8 between them.
    """
    text = value.strip(" \t")
    is_base64 = text.startswith(BASE64_PREFIX) and text.endswith(BASE64_SUFFIX)
    is_too_short = len(text) < len(BASE64_PREFIX + BASE64_SUFFIX)  # "=?base64?=" has one "?" for both
    if not is_base64 or is_too_short:
        return text
    encoded = text[len(BASE64_PREFIX) : -len(BASE64_SUFFIX)]
    decoded = binascii.a2b_base64(encoded, strict_mode=True)
    # The decoder ignores unused bits of the last character, so several texts decode to the same bytes. Only the text
    # that an encoder writes is valid.
    if binascii.b2a_base64(decoded, newline=False).decode() != encoded:
        raise ValueError(encoded)
    return decoded.decode()


def encode(value: str) -> str:
    """Encode a text for `decode`: as base64 if a header cannot hold it."""
    is_plain = value.isascii() and value.isprintable() and value == value.strip()
    if is_plain and not value.startswith(BASE64_PREFIX):
        return value
    encoded = binascii.b2a_base64(value.encode(), newline=False).decode()
    return f"{BASE64_PREFIX}{encoded}{BASE64_SUFFIX}"
