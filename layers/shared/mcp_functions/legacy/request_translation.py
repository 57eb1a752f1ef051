"""Rewrites a request of an earlier revision as a client of 2026-07-28 would send it: message, headers and event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from mcp_functions.handlers import lookup
from mcp_functions.protocol import headers
from mcp_functions.protocol.constants import (
    CALLS,
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_EARLIER,
    META_LOG_LEVEL,
    META_PROTOCOL_VERSION,
    PROTOCOL_VERSION,
)
from mcp_functions.protocol.json_writer import dumps_utf8

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.legacy.exchange import Exchange
    from mcp_functions.protocol.wire_types import JSONRPCRequest, RequestId

# These names have another meaning in 2026-07-28, or none.
DROPPED_PARAMS = frozenset({"_meta", "inputResponses", "requestState", "task"})
DROPPED_HEADERS = ("mcp-session-id", "last-event-id", "content-length", "content-encoding")


def modern_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the params that keep their meaning in 2026-07-28, with a copy of `_meta`."""
    meta = params.get("_meta")
    kept = {name: value for name, value in params.items() if name not in DROPPED_PARAMS}
    return {**kept, "_meta": dict(meta) if isinstance(meta, dict) else {}}


def modern_message(
    exchange: Exchange, id_: RequestId, method: str, params: Mapping[str, Any], capabilities: Mapping[str, Any]
) -> JSONRPCRequest:
    """Return the message of 2026-07-28."""
    meta: dict[str, Any] = {
        **params["_meta"],
        META_PROTOCOL_VERSION: PROTOCOL_VERSION,
        META_CLIENT_CAPABILITIES: dict(capabilities),
        META_EARLIER: exchange.revision,
    }
    if exchange.session:
        name, version = exchange.session.client
        meta[META_CLIENT_INFO] = {"name": name, "version": version}
        meta[META_LOG_LEVEL] = exchange.session.level
    message = {"jsonrpc": "2.0", "id": id_, "method": method, "params": {**params, "_meta": meta}}
    return cast("JSONRPCRequest", message)


def modern_headers(message: JSONRPCRequest, offered: Mapping[str, Any], received: Mapping[str, str]) -> dict[str, str]:
    """Return the received headers, with those that 2026-07-28 repeats from the body."""
    method, params = message["method"], message["params"]
    written = {
        **{name: value for name, value in received.items() if name not in DROPPED_HEADERS},
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": PROTOCOL_VERSION,
        "mcp-method": method,
    }
    name = params.get(CALLS.get(method, ""))
    if isinstance(name, str):
        written["mcp-name"] = headers.encode(name)
    if method == "tools/call":
        arguments = params.get("arguments")
        declared = lookup.header_arguments(offered, name)
        written |= headers.repeat(declared, arguments if isinstance(arguments, dict) else {})
    return written


def modern_event(
    event: Mapping[str, Any], message: JSONRPCRequest, written: Mapping[str, str], *, spare_ms: int
) -> dict[str, Any]:
    """Return the event that API Gateway would have sent for a modern client, so many milliseconds earlier."""
    context = dict(event["requestContext"])
    context["http"] = {**context["http"], "method": "POST"}
    if type(context.get("timeEpoch")) is int and context["timeEpoch"] > spare_ms:
        context["timeEpoch"] -= spare_ms
    return {
        **event,
        "headers": dict(written),
        "requestContext": context,
        "body": dumps_utf8(message).decode(),
        "isBase64Encoded": False,
    }
