"""Makes correct requests of a client: JSON-RPC messages, their headers, and their HTTP requests.

An attack takes a correct request and changes it in one place.
"""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mcp_functions_harness.client.http import CALLER, Request

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mcp_functions.protocol.wire_types import ClientCapabilities, JSONRPCMessage, Meta, Params, RequestId, Schema

VERSION = "2026-07-28"
EVERYTHING: ClientCapabilities = {  # of a client that can do everything
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
}
NAME_PARAMETERS = {  # method -> the parameter that the `Mcp-Name` header repeats
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    **dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId"),
}
SAME_WORDS = "make its words from the arguments and from recorded values (step, step.now()), not from a clock"
REASON = " (Please answer again: "  # begins what the toolkit adds after a wrong answer


def is_same_question(before: str, now: str) -> bool:
    """Whether a message is that of an earlier question, perhaps with the reason why its answer does not fit."""
    return now.startswith(before.partition(REASON)[0])


def message(
    method: str, params: Params, id_: RequestId = 1, capabilities: ClientCapabilities | None = None
) -> JSONRPCMessage:
    """Return a JSON-RPC request; without `capabilities`, the client declares all."""
    declared = EVERYTHING if capabilities is None else capabilities
    meta: Meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": declared,
    }
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": {**params, "_meta": meta}}


def headers(message_: JSONRPCMessage, parameters: Iterable[tuple[str, str]] = ()) -> tuple[tuple[str, str], ...]:
    """Return the headers of a message."""
    params: Mapping[str, Any] = message_.get("params", {})
    pairs = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", VERSION),
        ("Mcp-Method", message_["method"]),
    ]
    name = params.get(NAME_PARAMETERS.get(message_["method"], ""))
    if isinstance(name, str):
        pairs.append(("Mcp-Name", _header_value(name)))
    arguments = params.get("arguments") or {}
    for key, parameter in parameters:
        value = arguments.get(key)
        if value is not None:
            text = value if isinstance(value, str) else json.dumps(value)
            pairs.append((f"Mcp-Param-{parameter}", _header_value(text)))
    return tuple(pairs)


def header_parameters(schema: Schema) -> list[tuple[str, str]]:
    """Return each argument that a header repeats, with the name of its header (`x-mcp-header` of the schema)."""
    properties = schema.get("properties") or {}
    return [(name, member["x-mcp-header"]) for name, member in properties.items() if "x-mcp-header" in member]


def write(message_: JSONRPCMessage, parameters: Iterable[tuple[str, str]] = (), person: str = CALLER) -> Request:
    """Return the HTTP request of a message."""
    return Request(json.dumps(message_).encode(), headers(message_, parameters), person=person)


def with_header(request: Request, name: str, *values: str) -> Request:
    """Return a request in which `values` replace the values of a header; without any, it has no such header."""
    kept = [pair for pair in request.headers if pair[0].lower() != name.lower()]
    return replace(request, headers=(*kept, *((name, value) for value in values)))


def in_base64(text: str) -> str:
    """Return a text as a header's value in base64, `=?base64?…?=`."""
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def _header_value(text: str) -> str:
    """Return a header's value: in base64 if a header cannot contain the text, or if the text looks like base64."""
    is_plain = text.isascii() and text.isprintable() and text == text.strip()
    if is_plain and not text.startswith("=?"):
        return text
    return in_base64(text)
