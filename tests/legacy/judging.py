"""The oracle for what goes out to clients of 2025: the official types of each revision, and nothing of 2026-07-28."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from mcp_types import methods

from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Mapping

LATEST = "2025-11-25"
NEW = {"resultType", "ttlMs", "cacheScope"}
OK = 200


def is_earlier(event: Mapping[str, Any], response: Mapping[str, Any]) -> bool:
    """Whether this was an exchange with a client of 2025: it names no revision of 2026, and it was answered."""
    headers = {**_object(event, "headers"), **_object(event, "multiValueHeaders")}
    named = str({name.lower(): value for name, value in headers.items()}.get("mcp-protocol-version"))
    told = "jsonrpc" in response["body"] or response["headers"].get("content-type") == "text/event-stream"
    if response["statusCode"] != OK or not told or wire.VERSION in named:
        return False
    body = event.get("body") or ""
    sent = json.loads(base64.b64decode(body) if event.get("isBase64Encoded") else body) if body else {}
    return not any(_is_modern(each) for each in (sent if isinstance(sent, list) else [sent]))


def _is_modern(message: Mapping[str, Any]) -> bool:
    """Return whether a message has the envelope of 2026 at its top level."""
    match message:
        case {"params": {"_meta": dict(meta)}}:
            return f"{wire.PREFIX}protocolVersion" in meta
    return False


def _object(event: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Take an object out of an event that may be wounded just there."""
    return found if isinstance(found := event.get(name), dict) else {}


def messages(response: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Take the messages out of a response; events that only prime a client hold none."""
    if response["headers"]["content-type"] == "application/json":
        found = json.loads(response["body"])
        return found if isinstance(found, list) else [found]
    lines = response["body"].split("\n")
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ") and line[6:]]


def judge(event: Mapping[str, Any], response: Mapping[str, Any]) -> None:
    """Judge all messages of a response, as far as the request says what they answer."""
    named = _object(event, "headers").get("mcp-protocol-version")
    sent = json.loads(event["body"]) if event.get("body") and not event.get("isBase64Encoded") else {}
    every = sent if isinstance(sent, list) else [sent]
    called = {each["id"]: each["method"] for each in every if "method" in each and "id" in each}
    for message in messages(response):
        assert message["jsonrpc"] == "2.0"
        if "method" in message:
            parse = methods.parse_server_request if "id" in message else methods.parse_server_notification
            parse(message["method"], named or LATEST, message.get("params"))
        elif "error" in message:
            assert message["error"].keys() <= {"code", "message", "data"}
            assert type(message["error"]["code"]) is int
        else:
            judge_result(message["result"], called.get(message["id"]), named)


def judge_result(result: Mapping[str, Any], method: str | None, version: str | None) -> None:
    """Judge one result."""
    assert not NEW & result.keys()
    assert not [name for name in result.get("_meta", {}) if name.startswith(wire.PREFIX)]
    if method is not None:
        known = result["protocolVersion"] if method == "initialize" else version or LATEST
        methods.parse_server_result(method, known, result)
