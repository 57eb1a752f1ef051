"""The order of the checks in `http.exchange`, and the id in the error of each.

Each request has the fault of its row and the faults of all later rows, as far as one request can. So the response shows
which check came first.
"""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from mcp_functions import tool
from mcp_functions.assembly import Options, Parts, assemble
from mcp_functions.http.gateway import LambdaFunction, WorkFailed
from tests.support import wire
from tests.support.settings import make_settings

LIMIT = 2000
PATH = "/.well-known/oauth-protected-resource/mcp"
# Faults of HTTP that later checks find: another media type, and a header that contradicts the body.
BROKEN = {"content-type": "text/plain", "mcp-method": "tools/list"}
ORIGIN = {"origin": "https://evil.example"}
PREFLIGHT = {"origin": "https://good.example", "access-control-request-method": "POST"}
CLIENT_OF_2025 = {"mcp-protocol-version": "2025-06-18"}
JSON = {"content-type": "application/json"}
CALLER = {"authorizer": {"iam": {"accountId": "1", "userArn": "arn:aws:iam::1:user/a", "userId": "A"}}}
HELLO = {**CLIENT_OF_2025, **JSON, "mcp-method": "initialize"}
LARGE = " " * (LIMIT + 1)

UNKNOWN = wire.message("no/such", {}, id="m")
# A dialect takes a response for the continuation of a call; a server of this revision takes no responses.
RESPONSE = {"jsonrpc": "2.0", "id": "test.forged", "result": {}}
INITIALIZE = {"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
NO_METHOD = json.dumps({"jsonrpc": "2.0", "id": "m"})

STOPPED = {"stopped_functions": frozenset(["test"])}
DIALECT = {"dialects": ("sep-1685",)}
# step -> the settings, the body, the options of the event; the status, the code of the error, and its id
STEPS: dict[str, tuple[dict[str, Any], Any, dict[str, Any], tuple[int, Any, Any]]] = {
    "origin": (STOPPED, LARGE, {"headers": ORIGIN, "http_method": "GET"}, (403, None, None)),
    "metadata": (STOPPED, LARGE, {"path": PATH, "http_method": "GET"}, (200, None, None)),
    "preflight": (STOPPED, LARGE, {"headers": PREFLIGHT, "http_method": "OPTIONS"}, (204, None, None)),
    "stopped function": (STOPPED, LARGE, {"headers": CLIENT_OF_2025, "http_method": "GET"}, (503, -32603, None)),
    "client of 2025": ({}, INITIALIZE, {"headers": HELLO, "context": CALLER}, (200, None, 7)),
    "HTTP method": ({}, LARGE, {"http_method": "PUT"}, (405, None, None)),
    "too large a body": ({}, LARGE, {"base64": True}, (413, -32600, None)),
    "too large a body of a client of 2025": ({}, LARGE, {"headers": CLIENT_OF_2025}, (413, -32600, None)),
    "media type of a body that is not JSON": ({}, "{", {}, (415, -32600, None)),
    "not base64": ({}, "{", {"isBase64Encoded": True, "headers": JSON},
                   (400, -32700, None)),
    "not JSON": ({}, "{", {"headers": JSON}, (400, -32700, None)),
    "not a message": ({}, NO_METHOD, {}, (400, -32600, "m")),
    "an array": ({}, "[]", {}, (400, -32600, None)),
    "message of a dialect": (DIALECT, RESPONSE | {"method": None}, {}, (400, -32600, None)),
    "forged message of a dialect": (DIALECT, RESPONSE, {"context": CALLER}, (400, -32602, None)),
    "the same without the dialect": ({}, RESPONSE, {"context": CALLER}, (400, -32600, None)),
    "media type": ({}, UNKNOWN, {}, (415, -32600, "m")),
    "base64 body": ({}, UNKNOWN, {"base64": True}, (415, -32600, "m")),
    "caller": ({}, UNKNOWN, {"headers": JSON}, (500, -32603, "m")),
    "header": ({}, UNKNOWN, {"headers": JSON, "context": CALLER}, (400, -32020, "m")),
    "method": ({}, UNKNOWN, {"headers": {**JSON, "mcp-method": "no/such"},
                             "context": CALLER}, (404, -32601, "m")),
}  # fmt: skip


@tool
def add(a: int) -> int:
    return a + 1


def deploy(**options: Any) -> LambdaFunction:  # noqa: ANN401 - settings
    known = {"auth_mode": "iam", "max_body_bytes": LIMIT, "allowed_origins": frozenset([PREFLIGHT["origin"]])}
    parts = Parts(make_settings(**{**known, **options}), "test", time.time, Options([add], codec=wire.PlainCodec()))
    endpoint = assemble(parts)
    return LambdaFunction(lambda _name, _now: endpoint)


@pytest.mark.parametrize("step", STEPS)
def test_each_check_comes_before_the_later_ones_and_its_error_has_the_id(step: str) -> None:
    settings, body, options, expected = STEPS[step]
    text = body if isinstance(body, str) else json.dumps(body)
    headers = {"mcp-protocol-version": wire.VERSION, **BROKEN, **options.get("headers", {})}
    event = wire.event(text, **{**options, "headers": headers})
    if "path" in options:
        event["rawPath"] = event["requestContext"]["http"]["path"] = options["path"]
    event["isBase64Encoded"] = options.get("isBase64Encoded", event["isBase64Encoded"])
    if step == "metadata":
        settings = {**settings, "auth_mode": "jwt", "jwt_issuer": "https://id.example", "jwt_audiences": ("a",)}
    response = deploy(**settings)(event, wire.Context())
    answer = json.loads(response["body"] or "{}")
    assert (response["statusCode"], answer.get("error", {}).get("code"), answer.get("id")) == expected


def test_an_order_is_no_request_and_a_stopped_function_leaves_its_task() -> None:
    order = {"mcpTask": {"id": "test.1", "owner": None}}
    assert deploy(**STOPPED)(order, wire.Context("local_test-worker")) == {}
    with pytest.raises(WorkFailed):  # no tool has tasks
        deploy()(order, wire.Context("local_test-worker"))
