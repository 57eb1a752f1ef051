"""`wire.check`, which checks every response of every test, refuses a message that breaks the specification."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import wire

SERVER_INFO = {"_meta": {wire.PREFIX + "serverInfo": {"name": "s", "version": "1"}}}
CACHE_HINTS: dict[str, Any] = {"ttlMs": 0, "cacheScope": "private"}
COMPLETE: dict[str, Any] = {"resultType": "complete", "content": []}
ROOTS_REQUEST: dict[str, Any] = {"method": "roots/list", "params": {}}


def result(**members: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"jsonrpc": "2.0", "id": 1, "result": {**SERVER_INFO, **members}}


def input_required(**requests: Any) -> dict[str, Any]:  # noqa: ANN401
    return result(resultType="input_required", inputRequests=requests, requestState="x")


def form(schema: dict[str, Any]) -> dict[str, Any]:
    requested = {"type": "object", "properties": {"field": schema}}
    return {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": requested}}


def listing(**tool: Any) -> dict[str, Any]:  # noqa: ANN401
    return result(
        resultType="complete", tools=[{"name": "t", "inputSchema": {"type": "object"}, **tool}], **CACHE_HINTS
    )


def error(code: int, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "No", **more}}


@pytest.mark.parametrize(
    ("message", "method"),
    [
        (result(**COMPLETE), "tools/call"),
        (result(**COMPLETE, structuredContent=None), "tools/call"),
        (result(**COMPLETE, structuredContent={"a": [None, 1.5]}), "tools/call"),
        (input_required(roots=ROOTS_REQUEST), "resources/read"),
        (input_required(form=form({"type": "string", "format": "date"})), "prompts/get"),
        (listing(outputSchema={"type": "integer"}), "tools/list"),
        (error(-32602), "tools/call"),
        ({"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}}, ""),
        (error(-32021, data={"requiredCapabilities": {"elicitation": {}}}), "tools/call"),
        ({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 2}}, ""),
    ],
)
def test_a_message_of_the_specification_passes(message: dict[str, Any], method: str) -> None:
    wire.check(message, method)


@pytest.mark.parametrize(
    ("message", "method"),
    [
        pytest.param(result(content=[]), "tools/call", id="no resultType"),
        pytest.param(result(resultType="complete"), "tools/call", id="no content"),
        pytest.param(result(resultType="task", content=[]), "tools/call", id="a task without its members"),
        pytest.param(result(**COMPLETE, is_error=True), "tools/call", id="an unknown member"),
        pytest.param(
            result(resultType="complete", content=[{"type": "text", "text": "x", "mime_type": "y"}]),
            "tools/call",
            id="an unknown member of a block",
        ),
        pytest.param(
            result(resultType="complete", content=[{"type": "image", "data": "x"}]),
            "tools/call",
            id="an image without a type",
        ),
        pytest.param(result(**COMPLETE, requestState="x"), "tools/call", id="a complete result with a state"),
        pytest.param({"jsonrpc": "2.0", "id": 1, "result": COMPLETE}, "tools/call", id="no serverInfo"),
        pytest.param({**result(**COMPLETE), "id": None}, "tools/call", id="a null id"),
        pytest.param({**result(**COMPLETE), "id": 1.5}, "tools/call", id="a fraction as id"),
        pytest.param({**result(**COMPLETE), "error": None}, "tools/call", id="a result and an error"),
        pytest.param(result(resultType="complete", contents=[]), "resources/read", id="no cache hints"),
        pytest.param(input_required(roots=ROOTS_REQUEST), "tools/list", id="a list that asks"),
        pytest.param(result(resultType="input_required"), "tools/call", id="neither requests nor a state"),
        pytest.param(
            result(resultType="input_required", requestState="x", **CACHE_HINTS),
            "resources/read",
            id="a question with cache hints",
        ),
        pytest.param(input_required(roots={**ROOTS_REQUEST, "id": 1}), "tools/call", id="an input request with an id"),
        pytest.param(
            input_required(form=form({"type": "string", "pattern": "x"})), "tools/call", id="a form with a pattern"
        ),
        pytest.param(
            input_required(form=form({"type": "object", "properties": {}})),
            "tools/call",
            id="a form with an object inside",
        ),
        pytest.param(
            input_required(form=form({"type": "array", "items": {"type": "integer", "enum": [1]}})),
            "tools/call",
            id="a form with a list of integers",
        ),
        pytest.param(listing(inputSchema={"type": "array"}), "tools/list", id="an inputSchema of an array"),
        pytest.param(listing(inputSchema=None), "tools/list", id="no inputSchema"),
        pytest.param(listing(outputSchema={"type": "strin"}), "tools/list", id="an invalid outputSchema"),
        pytest.param(error(-32002), "resources/read", id="a code that was retired"),
        pytest.param(error(-32000), "tools/call", id="an unknown code"),
        pytest.param(error(-32021), "tools/call", id="an error without its data"),
        pytest.param(
            error(-32021, data={"requiredCapabilities": ["elicitation"]}), "tools/call", id="capabilities in a list"
        ),
        pytest.param(error(-32022, data={"supported": []}), "tools/call", id="no requested version"),
        pytest.param(error(-32602, status=400), "tools/call", id="an unknown member of an error"),
        pytest.param({**error(-32602), "id": None}, "tools/call", id="an error with a null id"),
        pytest.param(
            {"jsonrpc": "2.0", "method": "notifications/none", "params": {}}, "", id="an unknown notification"
        ),
        pytest.param(
            {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 2}},
            "",
            id="progress without a token",
        ),
    ],
)
def test_a_message_that_breaks_the_specification_fails(message: dict[str, Any], method: str) -> None:
    with pytest.raises(wire.CHECK_ERRORS):
        wire.check(message, method)
