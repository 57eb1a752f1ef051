"""Writes the calls of legacy clients as requests of 2026-07-28, which is called the modern revision here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from mcp_functions.handlers import lookup
from mcp_functions.protocol import header_parameters, headers
from mcp_functions.protocol.constants import (
    CALL_METHODS,
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_CLIENT_REVISION,
    META_LOG_LEVEL,
    META_PROTOCOL_VERSION,
    PROTOCOL_VERSION,
)
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.messages import Request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.legacy.call import Call
    from mcp_functions.legacy.request import LegacyRequest
    from mcp_functions.protocol.wire_types import JSONRPCRequest

SPARE_SECONDS = 1.5  # the part of the gateway's time that a request must leave, to store and write its outcome
# These headers have another meaning in 2026-07-28, or none.
DROPPED_HEADERS = ("mcp-session-id", "last-event-id", "content-length", "content-encoding")


def modern_request(
    request: LegacyRequest, call: Call, capabilities: Mapping[str, Any], answers: Mapping[str, Any] | None
) -> Request:
    """Return the modern request for one round of a call. The arguments are those of `runner.run_rounds`."""
    modern = request.deployment.modern
    message = _message(request, call, capabilities, answers)
    written_headers = _headers(message, modern.catalog, request.http.headers)
    return Request(
        message=message,
        headers=written_headers,
        principal=request.caller.principal,
        address=request.http.address,
        gateway_deadline=request.gateway_deadline - SPARE_SECONDS,
        event=_event(request.event, message, written_headers) if modern.forwards else request.event,
        scopes=request.caller.scopes,
        lambda_deadline=request.lambda_deadline,
    )


def _message(
    request: LegacyRequest, call: Call, capabilities: Mapping[str, Any], answers: Mapping[str, Any] | None
) -> JSONRPCRequest:
    meta: dict[str, Any] = {
        **call.params["_meta"],
        META_PROTOCOL_VERSION: PROTOCOL_VERSION,
        META_CLIENT_CAPABILITIES: dict(capabilities),
        META_CLIENT_REVISION: request.revision,
    }
    if request.session:
        name, version = request.session.client
        meta[META_CLIENT_INFO] = {"name": name, "version": version}
        meta[META_LOG_LEVEL] = request.session.level
    params = {**call.params, "_meta": meta}
    if call.state:
        params["requestState"] = call.state
    if answers is not None:
        params["inputResponses"] = dict(answers)
    return cast("JSONRPCRequest", {"jsonrpc": "2.0", "id": call.id, "method": call.method, "params": params})


def _headers(message: JSONRPCRequest, catalog: Mapping[str, Any], received: Mapping[str, str]) -> dict[str, str]:
    """Return the received headers, with those that 2026-07-28 repeats from the body."""
    method = message["method"]
    params = message["params"]
    written = {name: value for name, value in received.items() if name not in DROPPED_HEADERS}
    written["accept"] = "application/json, text/event-stream"
    written["content-type"] = "application/json"
    written["mcp-protocol-version"] = PROTOCOL_VERSION
    written["mcp-method"] = method
    if method in CALL_METHODS:
        name = params.get(CALL_METHODS[method])  # the tool, prompt or resource
        if isinstance(name, str):
            written["mcp-name"] = headers.encode(name)
    if method == "tools/call":
        sent = params.get("arguments")
        declared = lookup.header_arguments(catalog, params.get("name"))
        written |= header_parameters.write(declared, sent if isinstance(sent, dict) else {})
    return written


def _event(event: Mapping[str, Any], message: JSONRPCRequest, written_headers: Mapping[str, str]) -> dict[str, Any]:
    """Return the event that API Gateway would have sent for a modern client.

    It is dated back by `SPARE_SECONDS`, so that the function which gets it ends before this one must.
    """
    context = dict(event["requestContext"])
    context["http"] = {**context["http"], "method": "POST"}
    spare_ms = int(SPARE_SECONDS * 1000)
    if type(context.get("timeEpoch")) is int and context["timeEpoch"] > spare_ms:
        context["timeEpoch"] -= spare_ms
    changed = {"headers": dict(written_headers), "requestContext": context}
    return {**event, **changed, "body": dumps(message), "isBase64Encoded": False}
