"""Writes the request of a client of 2025 as a client of 2026-07-28 would send it."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

    from mcp_functions.legacy.call_ids import LegacyCall
    from mcp_functions.legacy.request import LegacyRequest
    from mcp_functions.protocol.catalog_types import Catalog
    from mcp_functions.protocol.event_types import Event
    from mcp_functions.protocol.wire_types import ClientCapabilities, InputResponses, JSONRPCRequest, Meta, Params

SPARE_SECONDS = 1.5  # of the gateway's time, to store and write the outcome of a request
# These headers have another meaning in 2026-07-28, or none.
DROPPED_HEADERS = ("mcp-session-id", "last-event-id", "content-length", "content-encoding")


def write_request(
    request: LegacyRequest, call: LegacyCall, capabilities: ClientCapabilities, answers: InputResponses | None
) -> Request:
    """Write the request for one round of a call. The arguments are those of `runner.run_rounds`."""
    params: Params = {**call.params, "_meta": _meta(request, call, capabilities)}
    if call.state:
        params["requestState"] = call.state
    if answers is not None:
        params["inputResponses"] = answers
    message: JSONRPCRequest = {"jsonrpc": "2.0", "id": call.id, "method": call.method, "params": params}
    return Request(
        message=message,
        headers=_headers(message, request.catalog, request.http.headers),
        principal=request.caller.principal,
        address=request.http.address,
        gateway_deadline=request.http.gateway_deadline - SPARE_SECONDS,
        event=request.http.event,
        scopes=request.caller.scopes,
        lambda_deadline=request.http.lambda_deadline,
    )


def _meta(request: LegacyRequest, call: LegacyCall, capabilities: ClientCapabilities) -> Meta:
    meta: Meta = {
        **call.params["_meta"],
        META_PROTOCOL_VERSION: PROTOCOL_VERSION,
        META_CLIENT_CAPABILITIES: capabilities,
        META_CLIENT_REVISION: request.revision,
    }
    if request.session:
        name, version = request.session.client
        meta[META_CLIENT_INFO] = {"name": name, "version": version}
        meta[META_LOG_LEVEL] = request.session.level
    return meta


def _headers(message: JSONRPCRequest, catalog: Catalog, received: Mapping[str, str]) -> dict[str, str]:
    """Return the received headers, with those that 2026-07-28 repeats from the body."""
    method = message["method"]
    params = message["params"]
    written = {name: value for name, value in received.items() if name not in DROPPED_HEADERS}
    written["accept"] = "application/json, text/event-stream"
    written["content-type"] = "application/json"
    written["mcp-protocol-version"] = PROTOCOL_VERSION
    written["mcp-method"] = method
    name = params.get(CALL_METHODS[method]) if method in CALL_METHODS else None
    if isinstance(name, str):
        written["mcp-name"] = headers.encode(name)
    if method == "tools/call":
        arguments = params.get("arguments")
        declared = lookup.header_arguments(catalog, name)
        written |= header_parameters.write(declared, arguments if isinstance(arguments, dict) else {})
    return written


def forwardable_event(request: Request) -> Event:
    """Return the event that API Gateway would have sent for a request of `write_request`.

    A front door forwards this event to another function. It is dated back by `SPARE_SECONDS`, so that the other
    function ends before this one must.
    """
    context = request.event["requestContext"].copy()
    context["http"] = {**context["http"], "method": "POST"}
    spare_ms = int(SPARE_SECONDS * 1000)
    if type(context.get("timeEpoch")) is int and context["timeEpoch"] > spare_ms:
        context["timeEpoch"] -= spare_ms
    return {
        **request.event,
        "headers": dict(request.headers),
        "requestContext": context,
        "body": dumps(request.message),
        "isBase64Encoded": False,
    }
