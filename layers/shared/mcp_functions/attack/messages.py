"""Requests as a well-behaved client writes them: what an attack then changes in one place."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from mcp_functions.attack.sending import CALLER, Sent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

VERSION = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
EVERYTHING: dict[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
}
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def message(
    method: str,
    params: Mapping[str, Any],
    id_: object = 1,
    capabilities: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Write a request; `capabilities` are all that there are, if none are given."""
    declared = EVERYTHING if capabilities is None else capabilities
    meta = {PREFIX + "protocolVersion": VERSION, PREFIX + "clientCapabilities": declared}
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": {**params, "_meta": meta}}


def headers(sent: Mapping[str, Any], parameters: Iterable[tuple[str, str]] = ()) -> tuple[tuple[str, str], ...]:
    """Write the headers that belong to a request.

    Args:
        sent: the request.
        parameters: property and name of each `x-mcp-header`.

    """
    params = sent.get("params", {})
    named = params.get(NAMED.get(sent["method"], ""))
    arguments = params.get("arguments") or {}
    mirrored = [(f"Mcp-Param-{name}", arguments[key]) for key, name in parameters if arguments.get(key) is not None]
    return (
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", VERSION),
        ("Mcp-Method", sent["method"]),
        *((("Mcp-Name", header(named)),) if isinstance(named, str) else ()),
        *((name, header(json.dumps(value) if not isinstance(value, str) else value)) for name, value in mirrored),
    )


def write(sent: Mapping[str, Any], parameters: Iterable[tuple[str, str]] = (), who: str = CALLER) -> Sent:
    """Make a request ready to be sent."""
    return Sent(json.dumps(sent).encode(), headers(sent, parameters), who=who)


def header(value: str) -> str:
    """Write a header value: in base64 where it could not stand as it is."""
    if value.isascii() and value.isprintable() and value == value.strip() and not value.startswith("=?"):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def with_header(sent: Sent, name: str, *values: str) -> Sent:
    """Put other values of a header in the place of what stands there; none takes it away."""
    kept = tuple(pair for pair in sent.headers if pair[0].lower() != name.lower())
    return Sent(sent.body, (*kept, *((name, value) for value in values)), sent.method, sent.who, sent.claimed)
