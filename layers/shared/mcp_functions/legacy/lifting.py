"""A request of an earlier revision, as a client of 2026-07-28 would have sent it: message, headers and event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from mcp_functions.handlers import catalog
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

    from mcp_functions.legacy.sessions import Session
    from mcp_functions.protocol.wire_types import JSONRPCRequest, RequestId

# What an earlier client means by these is not what 2026-07-28 does, or nothing.
FOREIGN = frozenset({"_meta", "inputResponses", "requestState", "task"})
OURS = ("mcp-session-id", "last-event-id", "content-length", "content-encoding")


def params(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Take the params of a request, and of its `_meta` what still means the same."""
    meta = sent.get("_meta")
    kept = {name: value for name, value in sent.items() if name not in FOREIGN}
    return {**kept, "_meta": dict(meta) if isinstance(meta, dict) else {}}


def message(  # noqa: PLR0913 - what makes a request modern
    id_: RequestId,
    method: str,
    taken: Mapping[str, Any],
    session: Session | None,
    declared: Mapping[str, Any],
    *,
    revision: str,
) -> JSONRPCRequest:
    """Write the message.

    Args:
        id_: of the request.
        method: of it.
        taken: what `params` took of it, and perhaps `requestState` and `inputResponses`.
        session: of the client, if it has one.
        declared: what may be asked of it now.
        revision: that it speaks.

    """
    meta: dict[str, Any] = {
        **taken["_meta"],
        META_PROTOCOL_VERSION: PROTOCOL_VERSION,
        META_CLIENT_CAPABILITIES: dict(declared),
        META_EARLIER: revision,
    }
    if session:
        name, version = session.client
        meta |= {META_CLIENT_INFO: {"name": name, "version": version}, META_LOG_LEVEL: session.level}
    return cast("JSONRPCRequest", {"jsonrpc": "2.0", "id": id_, "method": method, "params": {**taken, "_meta": meta}})


def repeated(sent: JSONRPCRequest, offered: Mapping[str, Any], received: Mapping[str, str]) -> dict[str, str]:
    """Write the headers: those that came, and those that repeat the body.

    Args:
        sent: as `message` wrote it.
        offered: the catalog.
        received: headers of the request, names in lower case.

    """
    method, taken = sent["method"], sent["params"]
    written = {
        **{name: value for name, value in received.items() if name not in OURS},
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": PROTOCOL_VERSION,
        "mcp-method": method,
    }
    name = taken.get(CALLS.get(method, ""))
    if isinstance(name, str):
        written["mcp-name"] = headers.encode(name)
    if method == "tools/call":
        arguments = taken.get("arguments")
        declared = catalog.declared(offered, name)
        written |= headers.repeat(declared, arguments if isinstance(arguments, dict) else {})
    return written


def event(
    came: Mapping[str, Any], sent: JSONRPCRequest, written: Mapping[str, str], *, spare_ms: int
) -> dict[str, Any]:
    """Write the event, for a front door to forward: as API Gateway would have, had the client been a modern one.

    Args:
        came: the event of the request.
        sent: as `message` wrote it.
        written: as `repeated` wrote it.
        spare_ms: that what answers has less time: what it says is still to be kept for the client.

    """
    context = dict(came["requestContext"])
    if isinstance(context.get("http"), dict):
        context["http"] = {**context["http"], "method": "POST"}
    for began in ("timeEpoch", "requestTimeEpoch"):
        if type(context.get(began)) is int and context[began] > spare_ms:
            context[began] -= spare_ms
    more = {"httpMethod": "POST"} if "httpMethod" in came else {}
    kept = {name: value for name, value in came.items() if name != "multiValueHeaders"}
    return {
        **kept,
        **more,
        "headers": dict(written),
        "requestContext": context,
        "body": dumps_utf8(sent).decode(),
        "isBase64Encoded": False,
    }
