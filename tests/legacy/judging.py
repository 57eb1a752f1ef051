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
    return not any(_is_modern(message) for message in _messages_of_body(body))


def _is_modern(message: Mapping[str, Any]) -> bool:
    """Return whether a message has the envelope of 2026 at its top level."""
    match message:
        case {"params": {"_meta": dict(meta)}}:
            return f"{wire.PREFIX}protocolVersion" in meta
    return False


def _messages_of_body(body: str | bytes) -> list[dict[str, Any]]:
    sent = json.loads(body or "{}")
    return sent if isinstance(sent, list) else [sent]


def _object(event: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a member of an event, or {} for an event that a test of dirty input has damaged there."""
    member = event.get(name)
    return member if isinstance(member, dict) else {}


def messages(response: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a response. An event may hold only an id to resume from."""
    if response["headers"]["content-type"] == "application/json":
        return _messages_of_body(response["body"])
    lines = response["body"].split("\n")
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ") and line[6:]]


def judge(event: Mapping[str, Any], response: Mapping[str, Any]) -> None:
    """Check all messages of a response; a result needs the method of its request."""
    version = _object(event, "headers").get("mcp-protocol-version")
    body = "" if event.get("isBase64Encoded") else event.get("body", "")
    methods_by_id = {
        sent["id"]: sent["method"] for sent in _messages_of_body(body) if "method" in sent and "id" in sent
    }
    for message in messages(response):
        assert message["jsonrpc"] == "2.0"
        if "method" in message:
            parse = methods.parse_server_request if "id" in message else methods.parse_server_notification
            parse(message["method"], version or LATEST, message.get("params"))
        elif "error" in message:
            assert message["error"].keys() <= {"code", "message", "data"}
            assert type(message["error"]["code"]) is int
        else:
            judge_result(message["result"], methods_by_id.get(message["id"]), version)


def judge_result(result: Mapping[str, Any], method: str | None, version: str | None) -> None:
    """Check one result."""
    assert not MEMBERS_OF_2026 & result.keys()
    assert not [name for name in result.get("_meta", {}) if name.startswith(wire.PREFIX)]
    if method is not None:
        revision = result["protocolVersion"] if method == "initialize" else version or LATEST
        methods.parse_server_result(method, revision, result)
