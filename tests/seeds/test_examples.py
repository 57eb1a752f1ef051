"""The examples of the proposals and drafts that this package follows ("seeds"): the functions answer as they show.

Each test sends the JSON of a document to a function and compares the whole response with the JSON of the document.
The released revision 2026-07-28 takes precedence over the
documents, so `send` adds or removes what they lack:

- `_meta`: "Every request MUST include the required `_meta` fields" (basic/patterns/mrtr); servers "SHOULD include"
  `serverInfo` "in every result's `_meta`" (basic).
- `requestState`: this server adds one to every question. "The InputRequiredResult MAY include a requestState field."

A third difference is in the expected responses: the documents leave out `"mode": "form"`, and this server sends it.
"servers MAY omit the mode field for form mode elicitation requests" (client/elicitation).
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from functions.get_weather.app import get_weather
from functions.update_work_item.app import update_work_item
from mcp_functions import serve
from mcp_functions_harness.testing import Conversation
from tests.seeds import functions
from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.http.gateway import LambdaFunction

    ServeTool = Callable[[Any], LambdaFunction]

ALL_CAPABILITIES: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}
EXAMPLES = Path(__file__).with_name("examples")
SERVER_INFO = "io.modelcontextprotocol/serverInfo"


@pytest.fixture(params=["one container", "a new container for each request"])
def serve_tool(request: pytest.FixtureRequest) -> ServeTool:
    """Return a function that serves a tool: from one container, or from a new container at each call."""
    if request.param == "one container":
        return functools.cache(serve)  # the second call returns the function of the first
    return serve


def send(function: LambdaFunction, request: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Send a JSON-RPC request of a document to a function.

    Returns:
        The response without `_meta` and `requestState`; and the `requestState`, or None if there is none.

    """
    message = wire.message(request["method"], request["params"], id=request["id"], capabilities=ALL_CAPABILITIES)
    context = wire.Context(f"local_{function.handlers[0].name}")
    http_response = function(wire.event(message), context)
    assert http_response["statusCode"] == 200
    response = wire.read(http_response, request["method"])
    assert response["result"].pop("_meta").keys() == {SERVER_INFO}
    return response, response["result"].pop("requestState", None)


def check_example(file: str, tool: Any, serve_tool: ServeTool) -> None:  # noqa: ANN401 - a tool of any signature
    """Send the requests of a document, one after the other, and compare each response with the document.

    Args:
        file: the requests and responses of the document. Each request but the first sends the state back.
        tool: the tool of the example.
        serve_tool: returns the function for the next request.
    """
    state = None
    for exchange in json.loads((EXAMPLES / file).read_text(encoding="utf-8")):
        request = exchange["request"]
        if "requestState" in request["params"]:
            request["params"]["requestState"] = state
        response, state = send(serve_tool(tool), request)
        assert response == exchange["response"]
        is_final = response["result"]["resultType"] == "complete"
        assert is_final == (state is None)


def test_the_weather_example_of_sep_2322_runs_in_one_or_more_containers(serve_tool: ServeTool) -> None:
    check_example("sep_2322_weather.json", get_weather, serve_tool)


def test_the_work_item_example_of_sep_2322_runs_in_one_or_more_containers(serve_tool: ServeTool) -> None:
    check_example("sep_2322_work_item.json", update_work_item, serve_tool)


# SEP-2322, "Schema Changes", and the draft page, "Core Types", show the same two questions of one round.
ASK_FOR_THE_LOGIN = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Please provide your GitHub username",
        "requestedSchema": {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        },
    },
}
ASK_FOR_THE_CAPITAL = {
    "method": "sampling/createMessage",
    "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "What is the capital of France?"}}],
        "modelPreferences": {
            "hints": [{"name": "claude-3-sonnet"}],
            "intelligencePriority": 0.8,
            "speedPriority": 0.5,
        },
        "systemPrompt": "You are a helpful assistant.",
        "maxTokens": 100,
    },
}
ASK_FOR_THE_CAPITAL_WITHOUT_PREFERENCES = {
    "method": "sampling/createMessage",
    "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "What is the capital of France?"}}],
        "systemPrompt": "You are a helpful assistant.",
        "maxTokens": 100,
    },
}

# SEP-2322, "Guidance for Error Handling": the client answers a question that the server did not ask.
CALL_GET_WEATHER: dict[str, Any] = {"name": "get_weather", "arguments": {"location": "New York"}}
UNREQUESTED_ANSWER: dict[str, Any] = {
    "not_requested_info": {
        "action": "accept",
        "content": {"not_requested_param_name": "Information the server did not request"},
    }
}
RESPONSE_THAT_ASKS_FOR_THE_LOGIN = {
    "jsonrpc": "2.0",
    # The document has the id 2 here, which is a mistake: "Result responses MUST include the same ID as the request".
    "id": 3,
    "result": {"resultType": "input_required", "inputRequests": {"github_login": ASK_FOR_THE_LOGIN}},
}


def test_an_unrequested_answer_without_a_state_repeats_the_question() -> None:
    params = {**CALL_GET_WEATHER, "inputResponses": UNREQUESTED_ANSWER}
    response, state = send(serve(get_weather), {"id": 3, "method": "tools/call", "params": params})
    assert response == RESPONSE_THAT_ASKS_FOR_THE_LOGIN
    assert isinstance(state, str)


def test_an_unrequested_answer_with_a_state_repeats_the_question() -> None:
    function = serve(get_weather)
    _, state = send(function, {"id": 2, "method": "tools/call", "params": CALL_GET_WEATHER})

    params = {**CALL_GET_WEATHER, "inputResponses": UNREQUESTED_ANSWER, "requestState": state}
    response, next_state = send(function, {"id": 3, "method": "tools/call", "params": params})
    assert response == RESPONSE_THAT_ASKS_FOR_THE_LOGIN
    assert isinstance(next_state, str)


def test_a_requested_answer_after_an_unrequested_one_completes_the_call() -> None:
    function = serve(get_weather)
    params = {**CALL_GET_WEATHER, "inputResponses": UNREQUESTED_ANSWER}
    _, state = send(function, {"id": 3, "method": "tools/call", "params": params})

    login = {"github_login": {"action": "accept", "content": {"name": "octocat"}}}
    params = {**CALL_GET_WEATHER, "inputResponses": login, "requestState": state}
    response, state = send(function, {"id": 3, "method": "tools/call", "params": params})
    text = "Current weather in New York:\nTemperature: 72°F\nConditions: Partly cloudy"
    assert response == {
        "jsonrpc": "2.0",
        "id": 3,
        "result": {"resultType": "complete", "content": [{"type": "text", "text": text}], "isError": False},
    }
    assert state is None


def test_the_input_requests_of_sep_2322() -> None:
    conversation = Conversation(functions.handler).call("core_types", preferences=True)
    assert conversation.requests == {
        "github_login": ASK_FOR_THE_LOGIN,
        "capital_of_france": ASK_FOR_THE_CAPITAL,
    }


def test_the_input_requests_of_the_draft_page() -> None:
    conversation = Conversation(functions.handler).call("core_types", preferences=False)
    assert conversation.requests == {
        "github_login": ASK_FOR_THE_LOGIN,
        "capital_of_france": ASK_FOR_THE_CAPITAL_WITHOUT_PREFERENCES,
    }


def test_the_input_required_result_of_the_draft_page() -> None:
    response, state = send(
        functions.handler,
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "core_types", "arguments": {}}},
    )
    assert response == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {
            "resultType": "input_required",
            "inputRequests": {
                "github_login": ASK_FOR_THE_LOGIN,
                "capital_of_france": ASK_FOR_THE_CAPITAL,
            },
        },
    }
    assert isinstance(state, str)


def test_the_function_receives_the_input_responses_of_sep_2322_and_the_draft_page() -> None:
    """Both documents show these two input responses."""
    conversation = Conversation(functions.handler).call("core_types")
    conversation.answer(
        github_login={"action": "accept", "content": {"name": "octocat"}},
        capital_of_france={
            "role": "assistant",
            "content": {"type": "text", "text": "The capital of France is Paris."},
            "model": "claude-3-sonnet-20240307",
            "stopReason": "endTurn",
        },
    )
    assert conversation.text == "octocat: The capital of France is Paris."


# The page "Multi-round-trip requests" of the Python SDK
def test_an_invalid_state_gets_the_error_of_the_sdk_page() -> None:
    arguments = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
    conversation = Conversation(serve(update_work_item)).call(**arguments).tamper()
    assert conversation.error == {
        "code": -32602,
        "message": "Invalid or expired requestState",
        "data": {"reason": "invalid_request_state"},  # not on the page; the released SDK sends it
    }


def test_the_example_of_the_sdk_page_asks_on_the_first_call() -> None:
    conversation = Conversation(functions.handler).call("region_of", service="DynamoDB")
    assert conversation.asked == ["region"]


def test_the_example_of_the_sdk_page_completes_with_the_answer() -> None:
    conversation = Conversation(functions.handler).call("region_of", service="DynamoDB")
    assert conversation.accept(region={"region": "eu-central-1"}).text == "DynamoDB in eu-central-1"


def test_a_request_state_in_a_file_continues_the_conversation_in_another_process(tmp_path: Path) -> None:
    """Serve each request from a new container, and keep only the state, in a file, for the next request.

    Every request has the same name and the same arguments: "Same tool name, same arguments, every leg."
    """
    state_file = tmp_path / "conversation.json"

    def send_request(input_responses: dict[str, Any]) -> str:
        call = {"name": "update_work_item", "arguments": {"workItemId": 4522, "fields": {"System.State": "Resolved"}}}
        if state_file.exists():
            call["requestState"] = json.loads(state_file.read_text(encoding="utf-8"))
        params = {**call, "inputResponses": input_responses}
        response, state = send(serve(update_work_item), {"id": 1, "method": "tools/call", "params": params})
        state_file.write_text(json.dumps(state), encoding="utf-8")
        return str(response["result"]["resultType"])

    assert send_request({}) == "input_required"
    answer = {"resolution": {"action": "accept", "content": {"resolution": "Duplicate"}}}
    assert send_request(answer) == "input_required"
    answer = {"duplicate_of": {"action": "accept", "content": {"duplicateOfId": 4301}}}
    assert send_request(answer) == "complete"
