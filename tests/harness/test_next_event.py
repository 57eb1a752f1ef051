"""`mcp-functions next` puts the state of a response into the event of the next round."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from mcp_functions_harness.next_event import fill
from mcp_functions_harness.problems import Problem

STATE = 'ks1.AbC-_"\\'


def response(message: Any, **more: Any) -> str:  # noqa: ANN401 - JSON is any value
    return json.dumps({"statusCode": 200, "body": message if isinstance(message, str) else json.dumps(message), **more})


def event(body: Any = None, **more: Any) -> str:  # noqa: ANN401 - JSON is any value
    asked = {"params": {"requestState": "{{requestState}}"}} if body is None else body
    return json.dumps(
        {"version": "2.0", "headers": {"a": "b"}, "body": json.dumps(asked), "isBase64Encoded": False, **more}
    )


ASKS = {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "input_required", "requestState": STATE}}


def body_of_next_event(made: str) -> Any:  # noqa: ANN401 - JSON is any value
    return json.loads(json.loads(made)["body"])["params"]["requestState"]


def test_every_state_is_escaped_in_the_body() -> None:
    filled_event = fill(response(ASKS), event())
    assert body_of_next_event(filled_event) == STATE
    assert json.loads(filled_event) == {**json.loads(event()), "body": json.loads(filled_event)["body"]}


def test_next_event_finds_the_state_in_an_event_stream() -> None:
    progress = 'event: message\r\ndata: {"jsonrpc": "2.0", "method": "notifications/progress"}\r\n\r\n'
    stream = f"{progress}: comment\r\nid: 7\r\nevent: message\r\ndata: {json.dumps(ASKS)}\r\n\r\n"
    assert body_of_next_event(fill(response(stream), event())) == STATE


def test_next_event_reads_and_writes_base64_bodies() -> None:
    sent = base64.b64encode(json.dumps(ASKS).encode()).decode()
    waiting = json.loads(event())
    waiting |= {"isBase64Encoded": True, "body": base64.b64encode(waiting["body"].encode()).decode()}
    document = json.loads(fill(response(sent, isBase64Encoded=True), json.dumps(waiting)))
    assert json.loads(base64.b64decode(document["body"])) == {"params": {"requestState": STATE}}


@pytest.mark.parametrize("name", ["content-length", "Content-Length"])
def test_next_event_updates_the_content_length(name: str) -> None:
    document = json.loads(fill(response(ASKS), event(headers={name: "1"})))
    assert document["headers"] == {name: str(len(document["body"]))}


def test_next_event_fills_an_event_whose_headers_are_null() -> None:
    document = json.loads(fill(response(ASKS), event(headers=None)))
    assert document["headers"] is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "RESPONSE is empty"),
        ("no json", "RESPONSE is not a JSON object"),
        ("[]", "RESPONSE is not a JSON object"),
        ("{}", "RESPONSE is not what a Lambda behind API Gateway returns: it has no body"),
        ('{"body": ""}', "RESPONSE holds no JSON-RPC response in its body"),
        ('{"body": "[]"}', "RESPONSE holds no JSON-RPC response in its body"),
        ('{"body": "!", "isBase64Encoded": true}', "a body says that it is base64, but it is not"),
        ('{"errorType": "KeyError", "errorMessage": "x"}', "RESPONSE says that the function failed, KeyError: x"),
        (
            response({"error": {"code": -32602, "message": "Invalid or expired requestState"}}),
            "RESPONSE is an error, -32602: Invalid or expired requestState",
        ),
        (
            response({"result": {"resultType": "complete"}}),
            "RESPONSE has no requestState: it is the final result, no round follows it",
        ),
        (
            response({"result": {"resultType": "input_required", "inputRequests": {}}}),
            "RESPONSE asks without a requestState: send the next event as it is",
        ),
    ],
)
def test_the_error_for_a_response_without_a_state_gives_the_reason(given: str, message: str) -> None:
    with pytest.raises(Problem) as error:
        fill(given, event())
    assert str(error.value) == message


@pytest.mark.parametrize("given", [event({"params": {}}), '{"version": "2.0"}'])
def test_next_event_refuses_an_event_without_a_conversation(given: str) -> None:
    with pytest.raises(Problem, match=r"EVENT has no \{\{requestState\}\} in its body"):
        fill(response(ASKS), given)


def test_next_event_refuses_json_that_is_no_event() -> None:
    with pytest.raises(Problem, match="EVENT is not a JSON object"):
        fill(response(ASKS), "7")
