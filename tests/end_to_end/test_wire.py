"""The oracle can say no: a message that the specification does not allow fails `wire.check`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import wire

SERVER = {"_meta": {wire.PREFIX + "serverInfo": {"name": "s", "version": "1"}}}
CACHE: dict[str, Any] = {"ttlMs": 0, "cacheScope": "private"}
DONE: dict[str, Any] = {"resultType": "complete", "content": []}
ROOTS: dict[str, Any] = {"method": "roots/list", "params": {}}


def result(**members: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"jsonrpc": "2.0", "id": 1, "result": {**SERVER, **members}}


def asking(**requests: Any) -> dict[str, Any]:  # noqa: ANN401
    return result(resultType="input_required", inputRequests=requests, requestState="x")


def form(schema: dict[str, Any]) -> dict[str, Any]:
    requested = {"type": "object", "properties": {"field": schema}}
    return {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": requested}}


def listing(**tool: Any) -> dict[str, Any]:  # noqa: ANN401
    return result(resultType="complete", tools=[{"name": "t", "inputSchema": {"type": "object"}, **tool}], **CACHE)


def error(code: int, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "No", **more}}


@pytest.mark.parametrize(
    ("message", "method"),
    [
        (result(**DONE), "tools/call"),
        (result(**DONE, structuredContent=None), "tools/call"),
        (result(**DONE, structuredContent={"a": [None, 1.5]}), "tools/call"),
        (asking(roots=ROOTS), "resources/read"),
        (asking(form=form({"type": "string", "format": "date"})), "prompts/get"),
        (listing(outputSchema={"type": "integer"}), "tools/list"),
        (error(-32602), "tools/call"),
        ({"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}}, ""),
        (error(-32021, data={"requiredCapabilities": {"elicitation": {}}}), "tools/call"),
        ({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 2}}, ""),
    ],
)
def test_what_the_specification_allows_passes(message: dict[str, Any], method: str) -> None:
    wire.check(message, method)


@pytest.mark.parametrize(
    ("message", "method"),
    [
        (result(content=[]), "tools/call"),  # no resultType
        (result(resultType="complete"), "tools/call"),  # no content
        (result(resultType="task", content=[]), "tools/call"),
        (result(**DONE, is_error=True), "tools/call"),  # a name outside the specification
        (result(resultType="complete", content=[{"type": "text", "text": "x", "mime_type": "y"}]), "tools/call"),
        (result(resultType="complete", content=[{"type": "image", "data": "x"}]), "tools/call"),
        (result(**DONE, requestState="x"), "tools/call"),
        ({"jsonrpc": "2.0", "id": 1, "result": DONE}, "tools/call"),  # no serverInfo
        ({**result(**DONE), "id": None}, "tools/call"),
        ({**result(**DONE), "id": 1.5}, "tools/call"),
        ({**result(**DONE), "error": None}, "tools/call"),
        (result(resultType="complete", contents=[]), "resources/read"),  # no ttlMs, no cacheScope
        (asking(roots=ROOTS), "tools/list"),
        (result(resultType="input_required"), "tools/call"),
        (result(resultType="input_required", requestState="x", **CACHE), "resources/read"),
        (asking(roots={**ROOTS, "id": 1}), "tools/call"),
        (asking(form=form({"type": "string", "pattern": "x"})), "tools/call"),
        (asking(form=form({"type": "object", "properties": {}})), "tools/call"),
        (asking(form=form({"type": "array", "items": {"type": "integer", "enum": [1]}})), "tools/call"),
        (listing(inputSchema={"type": "array"}), "tools/list"),
        (listing(inputSchema=None), "tools/list"),
        (listing(outputSchema={"type": "strin"}), "tools/list"),
        (error(-32002), "resources/read"),
        (error(-32000), "tools/call"),
        (error(-32021), "tools/call"),  # no data
        (error(-32021, data={"requiredCapabilities": ["elicitation"]}), "tools/call"),
        (error(-32022, data={"supported": []}), "tools/call"),
        (error(-32602, status=400), "tools/call"),
        ({**error(-32602), "id": None}, "tools/call"),
        ({"jsonrpc": "2.0", "method": "notifications/none", "params": {}}, ""),
        ({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 2}}, ""),
    ],
)
def test_what_the_specification_does_not_allow_fails(message: dict[str, Any], method: str) -> None:
    with pytest.raises(wire.REFUSALS):
        wire.check(message, method)
