"""Responses of the front door when a function fails: the id of the request, an HTTP status, and no details.

Both clients use real HTTP; the Invoke API is a scripted server that records its requests.
"""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions import tool
from mcp_functions.front_door import FrontDoor
from mcp_functions.handlers import catalog
from mcp_functions.http.forwarding import IDLE_SECONDS, CachedClient, call_with_timeout, lambda_client
from mcp_functions.protocol.errors import OutcomeUnknown
from tests.support import wire
from tests.support.endpoints import make_function
from tests.support.http_servers import ScriptedResponse, ScriptedServer
from tests.support.settings import make_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = make_settings(stack="shop", auth_mode="none")
SECRET = "hunter2"  # noqa: S105 - what must not come through
MB = 1024 * 1024


@tool
def add(a: int) -> str:
    return str(a)


CATALOG = catalog.build([add], "add")
CALL = {"name": "add", "arguments": {"a": 1}}


class FrontDoorWithClock:
    """A front door with a clock, and a new client that is closed at the end."""

    def __init__(self) -> None:
        self.made: list[Any] = []
        self.seconds = 0.0
        offered = FrontDoor(CATALOG, SETTINGS, CachedClient(self._client, lambda: self.seconds))
        self._function = make_function(SETTINGS, offered.answer)

    def _client(self) -> Any:  # noqa: ANN401 - boto3's clients have no type of their own
        self.made.append(lambda_client())
        return self.made[-1]

    def send(self, event: dict[str, Any] | None = None, remaining_ms: int = 29_000) -> dict[str, Any]:
        sent = event or wire.event(wire.message("tools/call", CALL, id="r-1"))
        return self._function(sent, wire.Context("shop_mcp", remaining_ms))


@pytest.fixture(params=["lean", "boto3"])
def invoke(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    with ScriptedServer().listening() as api:
        monkeypatch.setenv("MCP_AWS_CLIENT", request.param)
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", f"http://{api.host}")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "local")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")
        yield api


@pytest.fixture
def front_door(invoke: ScriptedServer) -> Iterator[FrontDoorWithClock]:
    assert invoke
    opened = FrontDoorWithClock()
    yield opened
    for client in opened.made:
        client.close()


def error_response(status: int, code: str) -> ScriptedResponse:
    told = {"Message": SECRET, "Type": "User"}
    return ScriptedResponse(
        status, json.dumps(told).encode(), {"x-amzn-errortype": code, "content-type": "application/json"}
    )


def function_error(error_type: str, **more: object) -> ScriptedResponse:
    told = {"errorType": error_type, "errorMessage": SECRET, **more}
    return ScriptedResponse(200, json.dumps(told).encode(), {"x-amz-function-error": "Unhandled"})


def success_response(value: object) -> ScriptedResponse:
    return ScriptedResponse(200, value if isinstance(value, bytes) else json.dumps(value).encode())


INTERNAL_ERROR = {"code": -32603, "message": "Internal error"}
RETRYABLE_ERROR = {"code": -32603, "message": "Temporarily unavailable", "data": {"retryable": True}}
TIMEOUT_ERROR = {"code": -32603, "message": "The function did not answer in time"}
FUNCTION_ENDED_ERROR = {"code": -32603, "message": "The function ended before it answered; whether it acted is unknown"}
TOO_LARGE_ERROR = {"code": -32603, "message": "The result is larger than this server can send (6 MB)"}
HTTP = {"headers": {}, "body": SECRET}
RESULT = {
    "resultType": "complete",
    "content": [{"type": "text", "text": "1"}],
    "_meta": {f"{wire.PREFIX}serverInfo": {"name": "shop", "version": "0"}},
}
GOOD_RESPONSE = {
    "statusCode": 200,
    "headers": {"content-type": "application/json"},
    "body": json.dumps({"jsonrpc": "2.0", "id": "r-1", "result": RESULT}),
    "isBase64Encoded": False,
}


@pytest.mark.parametrize(
    ("told", "status", "said"),
    [
        (error_response(429, "TooManyRequestsException"), 503, RETRYABLE_ERROR),
        (error_response(502, "EC2ThrottledException"), 503, RETRYABLE_ERROR),
        (error_response(502, "ResourceNotReadyException"), 503, RETRYABLE_ERROR),
        (error_response(404, "ResourceNotFoundException"), 500, INTERNAL_ERROR),
        (error_response(403, "AccessDeniedException"), 500, INTERNAL_ERROR),
        (error_response(400, "InvalidRequestContentException"), 500, INTERNAL_ERROR),
        (error_response(413, "RequestTooLargeException"), 413, {"code": -32600, "message": "Request body too large"}),
        (function_error("Sandbox.Timedout"), 200, TIMEOUT_ERROR),
        (function_error("Runtime.ExitError"), 200, FUNCTION_ENDED_ERROR),
        (function_error("Runtime.OutOfMemory"), 200, FUNCTION_ENDED_ERROR),
        (function_error("Runtime.ImportModuleError", requestId="", stackTrace=[]), 200, INTERNAL_ERROR),
        (function_error("ValueError", requestId="x", stackTrace=[SECRET]), 200, INTERNAL_ERROR),
        (function_error("ValueError", statusCode=200, headers={}, body=SECRET), 200, INTERNAL_ERROR),
        (function_error("Function.ResponseSizeTooLarge"), 200, TOO_LARGE_ERROR),
        (ScriptedResponse(200, SECRET.encode(), {"x-amz-function-error": "Unhandled"}), 200, INTERNAL_ERROR),
        (success_response(b""), 200, INTERNAL_ERROR),
        (success_response(b"\xff"), 200, INTERNAL_ERROR),
        (success_response(SECRET.encode()), 200, INTERNAL_ERROR),
        (success_response(b"[" * 100_000), 200, INTERNAL_ERROR),
        (success_response([]), 200, INTERNAL_ERROR),
        (success_response({"errorMessage": SECRET}), 200, INTERNAL_ERROR),
        (success_response({"statusCode": "200", **HTTP}), 200, INTERNAL_ERROR),
        (success_response({"statusCode": 0, **HTTP}), 200, INTERNAL_ERROR),
        (success_response({"statusCode": 200, "headers": None, "body": SECRET}), 200, INTERNAL_ERROR),
        (success_response({"statusCode": 200, "headers": {}, "body": {"text": SECRET}}), 200, INTERNAL_ERROR),
        (success_response({"statusCode": 200, "headers": {}, "body": SECRET + "a" * 6 * MB}), 200, TOO_LARGE_ERROR),
        (None, 200, TIMEOUT_ERROR),
        (ScriptedResponse(200, b'{"statusCode":', {}, missing=1000), 200, TIMEOUT_ERROR),
    ],
)
def test_each_failure_of_an_invocation_has_its_http_status(  # noqa: PLR0913, PLR0917 - what goes in, and out
    invoke: ScriptedServer,
    front_door: FrontDoorWithClock,
    told: ScriptedResponse | None,
    status: int,
    said: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    invoke.script += [told, success_response(GOOD_RESPONSE)]
    response = front_door.send()
    assert (response["statusCode"], json.loads(response["body"])["error"]) == (status, said)
    assert json.loads(response["body"])["id"] == "r-1"
    assert ("retry-after" in response["headers"]) == (status == 503)
    assert len(invoke.asked) == 1  # and never a second time
    assert SECRET not in json.dumps(response) + caplog.text


def test_a_refused_connection_is_a_call_that_was_not_run(
    invoke: ScriptedServer, front_door: FrontDoorWithClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", "http://127.0.0.1:1")
    response = front_door.send()
    assert (response["statusCode"], json.loads(response["body"])["error"]) == (503, RETRYABLE_ERROR)
    assert invoke.asked == []


@pytest.mark.parametrize("late", ["the request is old", "the function has no time left"])
def test_the_front_door_stops_waiting_before_the_timeout_of_api_gateway(
    invoke: ScriptedServer, front_door: FrontDoorWithClock, late: str
) -> None:
    invoke.script.append(success_response(GOOD_RESPONSE))
    front_door.send()  # to make boto3's client takes longer, on a busy machine, than there is time here
    invoke.may_answer.clear()
    old = {"timeEpoch": int(time.time() * 1000) - 28_500} if late == "the request is old" else {}
    event = wire.event(wire.message("tools/call", CALL, id=7), context=old)
    response = front_door.send(event, 29_000 if old else 1500)
    assert (response["statusCode"], json.loads(response["body"])) == (
        200,
        {"jsonrpc": "2.0", "id": 7, "error": TIMEOUT_ERROR},
    )
    while len(invoke.asked) < 2:  # the thread of the call runs on
        time.sleep(0.01)
    assert len(invoke.asked) == 2  # the call before, and this one once


def test_a_call_that_ends_in_time_returns_its_result_or_raises_its_error() -> None:
    assert call_with_timeout(29, lambda: "result") == "result"
    with pytest.raises(ZeroDivisionError):
        call_with_timeout(29, lambda: 1 // 0)


def test_a_call_without_remaining_time_can_still_return_its_result() -> None:
    assert call_with_timeout(-1000, lambda: "result") == "result"


def test_a_call_that_does_not_end_raises_outcome_unknown() -> None:
    ends = threading.Event()
    with pytest.raises(OutcomeUnknown):
        call_with_timeout(0, ends.wait)
    ends.set()


def test_the_front_door_forwards_the_event_with_the_time_of_its_arrival(
    invoke: ScriptedServer, front_door: FrontDoorWithClock
) -> None:
    invoke.script.append(success_response(GOOD_RESPONSE))
    moment = {"timeEpoch": int(time.time() * 1000) - 5000, "requestId": "JKJaXmPLvHcESHA="}
    event = wire.event(wire.message("tools/call", CALL, meta={"com.example/ż": "żółw"}), context=moment)
    assert front_door.send(event) == GOOD_RESPONSE
    [(path, _headers, body)] = invoke.asked
    assert (path, json.loads(body)) == ("/2015-03-31/functions/shop_add/invocations", event)


def test_the_front_door_reuses_its_connection(invoke: ScriptedServer, front_door: FrontDoorWithClock) -> None:
    invoke.script += [success_response(GOOD_RESPONSE)] * 3
    for _ in range(3):
        front_door.seconds += IDLE_SECONDS
        assert front_door.send()["statusCode"] == 200
    assert (len(invoke.connections), len(front_door.made)) == (1, 1)


def test_the_front_door_does_not_reuse_a_connection_after_a_long_pause(
    invoke: ScriptedServer, front_door: FrontDoorWithClock
) -> None:
    invoke.script += [success_response(GOOD_RESPONSE)] * 2
    for _ in range(2):
        front_door.seconds += IDLE_SECONDS + 1
        assert front_door.send()["statusCode"] == 200
    assert (len(invoke.connections), len(front_door.made)) == (2, 1)


@pytest.mark.parametrize(
    "params",
    [
        {"name": "shop_add", "arguments": {"a": 1}},
        {"name": "mcp", "arguments": {}},
        {"name": "add:1", "arguments": {"a": 1}},
        {"name": "../add", "arguments": {"a": 1}},
    ],
)
def test_a_name_outside_the_catalog_causes_no_invocation(
    invoke: ScriptedServer, front_door: FrontDoorWithClock, params: dict[str, Any]
) -> None:
    response = front_door.send(wire.event(wire.message("tools/call", params)))
    assert json.loads(response["body"])["error"]["code"] == -32602
    assert (invoke.asked, front_door.made) == ([], [])


def test_the_front_door_forwards_a_call_while_another_times_out(
    invoke: ScriptedServer, front_door: FrontDoorWithClock
) -> None:
    waiting: list[dict[str, Any]] = []
    invoke.may_answer.clear()
    thread = threading.Thread(target=lambda: waiting.append(front_door.send(remaining_ms=1300)))
    thread.start()
    thread.join()
    invoke.script += [success_response(GOOD_RESPONSE)] * 2
    invoke.may_answer.set()
    assert json.loads(waiting[0]["body"])["error"] == TIMEOUT_ERROR
    assert front_door.send()["statusCode"] == 200
