"""The headers that repeat parts of a request's body (basic/transports, "Request headers").

    header                  repeats                                  required
    MCP-Protocol-Version    the protocol version in `_meta`          always
    Mcp-Method              `method`                                 always
    Mcp-Name                `params.name` or `params.uri`            in a call
    Mcp-Param-<name>        an argument (see `header_parameters`)    if the argument is there

A router may read only the headers, and a Lambda function reads the body. So every function compares the two: "servers
that process the message body MUST reject requests where the values specified in the headers do not match the values in
the request body". A text that a header cannot hold is sent in base64: "✓" is `=?base64?4pyT?=`.

The argument `headers` of each function has the headers of the HTTP request, with names in lower case.
"""

from __future__ import annotations

import binascii
import re
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.constants import CALL_METHODS, META_PROTOCOL_VERSION
from mcp_functions.protocol.errors import HeaderMismatch
from mcp_functions.protocol.json_writer import to_base64
from mcp_functions.protocol.messages import check_meta, check_version, value_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.wire_types import JSONRPCRequest

VERSION_HEADER = "MCP-Protocol-Version"
METHOD_HEADER = "Mcp-Method"
NAME_HEADER = "Mcp-Name"


def check_request(message: JSONRPCRequest, headers: Mapping[str, str]) -> None:
    """Check the headers and the `_meta` of a request. If several checks fail, the client gets the error of the first.

    Raises:
        InvalidParams: `_meta` lacks a required member.
        HeaderMismatch: a header is missing, malformed, or differs from the body.
        UnsupportedProtocolVersion: this server does not implement the revision.
    """
    check_no_contradiction(message, headers)
    check_meta(message)
    for header in _repeated(message):
        # A completion need not have it.
        is_required = header != NAME_HEADER or message["method"] in CALL_METHODS
        if is_required and header.lower() not in headers:
            raise _missing(header)
    check_version(message)


def check_no_contradiction(message: Mapping[str, Any], headers: Mapping[str, str]) -> None:
    """Raise HeaderMismatch if a header is malformed, or differs from the body. A header may be missing.

    Clients of earlier revisions are checked too, and notifications, which need no `_meta`.
    """
    for header, value in _repeated(message).items():
        if header.lower() in headers and read(headers, header) != value:
            raise mismatch(header)


def _repeated(message: Mapping[str, Any]) -> dict[str, str]:
    """Return the parts of a message that headers repeat, by the name of the header.

    A part that is missing or no string is left out. The method of the request refuses it later, with InvalidParams.
    """
    parts = {
        VERSION_HEADER: value_at(message, "params", "_meta", META_PROTOCOL_VERSION),
        METHOD_HEADER: message.get("method"),
        NAME_HEADER: _name_in(message),
    }
    return {header: value for header, value in parts.items() if isinstance(value, str)}


def _name_in(message: Mapping[str, Any]) -> object:
    """Return the name or URI in a call or a completion; None for other messages, or if it is missing."""
    method = message.get("method")
    if method == "completion/complete":
        return value_at(message, "params", "ref", "name") or value_at(message, "params", "ref", "uri")
    if isinstance(method, str) and method in CALL_METHODS:
        return value_at(message, "params", CALL_METHODS[method])
    return None


def read(headers: Mapping[str, str], name: str) -> str:
    """Return the decoded value of a header; raise HeaderMismatch if the header is missing or malformed."""
    if name.lower() not in headers:
        raise _missing(name)
    try:
        return decode(headers[name.lower()])
    except ValueError:  # `from None`, because the text of this error quotes the value
        raise HeaderMismatch(message=f"The header {name} is not valid base64") from None


def mismatch(name: str) -> HeaderMismatch:
    """Return the error for a header that differs from the body. Its text quotes neither of the two values."""
    return HeaderMismatch(message=f"The header {name} does not say what the body says")


def _missing(name: str) -> HeaderMismatch:
    return HeaderMismatch(message=f"The header {name} is missing")


# ---- The value of a header: plain text, or base64 between two marks

MARKED_BASE64 = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)


def decode(value: str) -> str:
    """Decode the value of a header: `=?base64?4pyT?=` is "✓", and a value without the two marks is the text itself.

    Raise a ValueError if there is no strict base64 of UTF-8 between the marks.
    """
    text = value.strip(" \t")
    marked = MARKED_BASE64.fullmatch(text)
    if marked is None:
        return text
    encoded = marked[1]
    decoded = binascii.a2b_base64(encoded, strict_mode=True)
    # The decoder ignores unused bits of the last character, so several texts decode to the same bytes. Only the text
    # that an encoder writes is valid.
    if to_base64(decoded) != encoded:
        raise ValueError(encoded)
    return decoded.decode()


def encode(value: str) -> str:
    """Encode a text for `decode`: as base64 if a header cannot hold it."""
    is_plain = value.isascii() and value.isprintable() and value == value.strip()
    if is_plain and not value.startswith("=?base64?"):
        return value
    return f"=?base64?{to_base64(value.encode())}?="
