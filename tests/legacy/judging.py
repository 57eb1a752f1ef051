"""Check every response to a client of 2025: it fits the official types of its revision, and has no member of 2026."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from mcp_types import methods

from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Mapping

LATEST = "2025-11-25"
MEMBERS_OF_2026 = {"resultType", "ttlMs", "cacheScope"}
OK = 200
_revisions: dict[str, str] = {}  # the negotiated revision of each session, by its id


def is_earlier(event: Mapping[str, Any], response: Mapping[str, Any]) -> bool:
    """Return whether a client of 2025 got a message: its request names no revision of 2026."""
    headers = {**_object(event, "headers"), **_object(event, "multiValueHeaders")}
    version = str({name.lower(): value for name, value in headers.items()}.get("mcp-protocol-version"))
    has_message = "jsonrpc" in response["body"] or response["headers"].get("content-type") == "text/event-stream"
    if response["statusCode"] != OK or not has_message or wire.VERSION in version:
        return False
    body = event.get("body") or ""
    if event.get("isBase64Encoded"):
        body = base64.b64decode(body)
    sent = json.loads(body or "{}")
    return isinstance(sent, dict) and not _is_modern(sent)  # only a dialect answers an array


def _is_modern(message: Mapping[str, Any]) -> bool:
    """Return whether a message has the envelope of 2026 at its top level."""
    match message:
        case {"params": {"_meta": dict(meta)}}:
            return f"{wire.PREFIX}protocolVersion" in meta
    return False


def _object(event: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a member of an event, or {} for an event that a test of dirty input has damaged there."""
    member = event.get(name)
    return member if isinstance(member, dict) else {}


def messages(response: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a response. An event may hold only an id to resume from."""
    if response["headers"]["content-type"] == "application/json":
        return [json.loads(response["body"])]
    lines = response["body"].split("\n")
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ") and line[6:]]


def judge(event: Mapping[str, Any], response: Mapping[str, Any]) -> None:
    """Check all messages of a response; a result needs the method of its request, which a resumed stream lacks."""
    headers = _object(event, "headers")
    version = _revisions.get(headers.get("mcp-session-id", ""), headers.get("mcp-protocol-version"))
    body = "" if event.get("isBase64Encoded") else event.get("body")
    sent = json.loads(body or "{}")
    for message in messages(response):
        if sent.get("method") == "initialize" and "result" in message:
            version = message["result"]["protocolVersion"]
        if "mcp-session-id" in response["headers"]:  # of a new session, or of a changed one
            _revisions[response["headers"]["mcp-session-id"]] = version or LATEST
        assert message["jsonrpc"] == "2.0"
        if "method" in message:
            parse = methods.parse_server_request if "id" in message else methods.parse_server_notification
            parse(message["method"], version or LATEST, message.get("params"))
            continue
        assert message["id"] == sent.get("id", message["id"])
        if "error" in message:
            assert message["error"].keys() <= {"code", "message", "data"}
            assert type(message["error"]["code"]) is int
        else:
            judge_result(message["result"], sent.get("method"), version)


def judge_result(result: Mapping[str, Any], method: str | None, version: str | None) -> None:
    """Check one result."""
    assert not MEMBERS_OF_2026 & result.keys()
    assert not [name for name in result.get("_meta", {}) if name.startswith(wire.PREFIX)]
    if method is not None:
        methods.parse_server_result(method, version or LATEST, result)
