"""What the proposals (SEPs) and drafts that this package follows ask of a server; the folder calls them "seeds".

requirements.toml lists where this server differs. `functions_of_seeds` has the functions of the documents' examples;
`post` sends one request to a function, and the official types check the response.
"""

from __future__ import annotations

import base64
import json
import logging
import re
from typing import TYPE_CHECKING, Any

import pytest

from functions.add.app import handler as add
from functions.update_work_item.app import handler as work_item
from functions.update_work_item.app import update_work_item
from mcp_functions import serve
from mcp_functions_harness.testing import Conversation, deployed
from tests.seeds import functions
from tests.seeds.functions import make_version
from tests.support import wire

if TYPE_CHECKING:
    from mcp_functions.http.gateway import LambdaFunction

RESOLVE_BUG: dict[str, Any] = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
DUPLICATE = {"resolution": "Duplicate"}
INVALID_REQUEST_STATE_ERROR = {
    "code": -32602,
    "message": "Invalid or expired requestState",
    "data": {"reason": "invalid_request_state"},
}
LOGIN = {"name": "octocat"}
functions_of_seeds = functions.handler


def start_resolving() -> Conversation:
    return Conversation(work_item).call(**RESOLVE_BUG)


def post(handler: LambdaFunction, method: str, params: dict[str, Any], **options: Any) -> tuple[int, dict[str, Any]]:  # noqa: ANN401 - as wire takes them
    """Return the HTTP status and the JSON-RPC response."""
    message = wire.message(method, params, **options)
    response = handler(wire.event(message), wire.Context(f"local_{handler.handlers[0].name}"))
    return response["statusCode"], wire.read(response, method)


def assert_invalid_request_state(response: tuple[int, dict[str, Any]]) -> None:
    status, message = response
    assert status == 400
    assert message["error"] == INVALID_REQUEST_STATE_ERROR


# --- which requests may be answered with a question ---------------------------------------------------------------

ASKING_REQUESTS: list[tuple[str, dict[str, Any], str]] = [  # method, params, the key of the question
    ("tools/call", {"name": "region_of", "arguments": {"service": "S3"}}, "region"),
    ("prompts/get", {"name": "greeting"}, "language"),
    ("resources/read", {"uri": "reports://2026"}, "reader"),
    ("resources/read", {"uri": "reports://latest"}, "reader"),
]


@pytest.mark.parametrize(("method", "params", "key"), ASKING_REQUESTS, ids=["tool", "prompt", "template", "static"])
def test_a_tool_a_prompt_and_a_resource_may_ask(method: str, params: dict[str, Any], key: str) -> None:
    _status, question = post(functions_of_seeds, method, params)
    assert question["result"]["resultType"] == "input_required"
    assert list(question["result"]["inputRequests"]) == [key]
    content = {"name": "octocat", "region": "eu-central-1"}
    answer = {"inputResponses": {key: {"action": "accept", "content": content}}}
    state = {"requestState": question["result"]["requestState"]}
    _status, response = post(functions_of_seeds, method, params | answer | state)
    assert response["result"]["resultType"] == "complete"


OTHER_METHODS = ["server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list"]


@pytest.mark.parametrize("method", OTHER_METHODS)
def test_no_other_request_gets_a_question_even_if_it_has_a_request_state(method: str) -> None:
    state = post(functions_of_seeds, "prompts/get", {"name": "greeting"})[1]["result"]["requestState"]
    for params in ({}, {"inputResponses": {}, "requestState": state}):
        status, answer = post(functions_of_seeds, method, params)
        assert (status, answer["result"]["resultType"]) == (200, "complete")


def test_a_completion_gets_no_question() -> None:
    reference = {"type": "ref/resource", "uri": "reports://{year}"}
    params = {"ref": reference, "argument": {"name": "year", "value": "20"}, "inputResponses": {}}
    _status, answer = post(functions_of_seeds, "completion/complete", params)
    assert answer["result"]["resultType"] == "complete"
    assert answer["result"]["completion"]["values"] == ["2025", "2026"]


def test_the_member_task_of_a_call_is_ignored() -> None:
    """SEP-2322's `params.task`: "clients do not signal task preference on the request itself" (released extension)."""
    _status, answer = post(add, "tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}, "task": {"ttl": 1}})
    assert answer["result"]["content"] == [{"type": "text", "text": "3"}]
    assert "task" not in answer["result"]


# --- the result ---------------------------------------------------------------------------------------------------


def test_a_question_is_the_last_message_of_its_stream() -> None:
    meta = {"progressToken": "p1"}
    message = wire.message("tools/call", {"name": "counted", "arguments": {}}, meta=meta)
    response = functions_of_seeds(wire.event(message), wire.Context("local_core_types"))
    assert response["headers"]["content-type"] == "text/event-stream"
    progress, question = wire.messages(response)
    assert progress["method"] == "notifications/progress"
    assert question["result"]["resultType"] == "input_required"


def test_a_question_without_progress_is_no_stream() -> None:
    _sent, response = start_resolving().rounds[0]
    assert response["headers"]["content-type"] == "application/json"


def test_the_server_sends_no_request() -> None:
    """A question is a part of a result, without an id."""
    meta = {"progressToken": 7}
    message = wire.message("tools/call", {"name": "counted", "arguments": {}}, meta=meta)
    response = functions_of_seeds(wire.event(message), wire.Context("local_core_types"))
    for message in wire.messages(response):
        assert not {"id", "method"} <= message.keys()
    for question in wire.messages(response)[-1]["result"]["inputRequests"].values():
        assert question.keys() == {"method", "params"}


def test_every_question_has_a_request_state() -> None:
    talk = start_resolving().accept(resolution=DUPLICATE)
    for _sent, response in talk.rounds:
        assert json.loads(response["body"])["result"].keys() >= {"inputRequests", "requestState"}


def test_a_function_that_ends_a_round_without_a_question_and_a_state_is_a_tool_error() -> None:
    talk = Conversation(functions_of_seeds).call("asks_nothing_at_all")
    assert talk.status == 200
    assert talk.result["isError"]


MISSING_CAPABILITIES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("form", {"sampling": {}, "roots": {}}, {"elicitation": {}}),
    ("form", {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
    ("url", {"elicitation": {}}, {"elicitation": {"url": {}}}),
    ("url", {"elicitation": {"form": {}}}, {"elicitation": {"url": {}}}),
    ("sampling", {"elicitation": {}}, {"sampling": {}}),
    ("sampling.tools", {"sampling": {}}, {"sampling": {"tools": {}}}),
    ("roots", {"elicitation": {}}, {"roots": {}}),
]


@pytest.mark.parametrize(("kind", "declared", "required"), MISSING_CAPABILITIES)
def test_a_client_without_the_capability_of_a_question_gets_an_error_that_names_it(
    kind: str, declared: dict[str, Any], required: dict[str, Any]
) -> None:
    talk = Conversation(functions_of_seeds, capabilities=declared).call("asks_for", kind=kind)
    assert (talk.status, talk.error["code"]) == (400, -32021)
    assert talk.error["data"] == {"requiredCapabilities": required}


@pytest.mark.parametrize("kind", ["form", "url", "sampling", "sampling.tools", "roots"])
def test_a_client_with_the_capability_of_a_question_gets_it(kind: str) -> None:
    assert Conversation(functions_of_seeds).call("asks_for", kind=kind).asked == ["asked"]


# --- each request stands alone ------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", [(1, 2), ("first", "second"), (1, 1)])
def test_the_rounds_of_a_conversation_may_have_any_ids(ids: tuple[Any, Any]) -> None:
    """The specification requires a new id for each request; the server does not depend on it."""
    params = {"name": "update_work_item", "arguments": RESOLVE_BUG}
    _status, question = post(work_item, "tools/call", params, id=ids[0])
    answer = {
        "inputResponses": {"resolution": {"action": "accept", "content": {"resolution": "Fixed"}}},
        "requestState": question["result"]["requestState"],
    }
    _status, response = post(work_item, "tools/call", params | answer, id=ids[1])
    assert (question["id"], response["id"]) == ids
    assert response["result"]["resultType"] == "complete"


def test_conversations_in_parallel_do_not_mix() -> None:
    one, other = start_resolving(), start_resolving()
    one.accept(resolution=DUPLICATE)
    assert other.accept(resolution={"resolution": "Fixed"}).text.startswith("Bug #4522 resolved as Fixed.")
    assert one.accept(duplicate_of={"duplicateOfId": 4301}).text.startswith("Bug #4522 resolved as Duplicate")


def test_a_function_does_nothing_for_a_client_that_does_not_answer() -> None:
    functions.NAMES_OF_ACT.clear()
    Conversation(functions_of_seeds).call("act")
    assert functions.NAMES_OF_ACT == []


def test_a_question_without_an_answer_is_asked_again_and_again() -> None:
    talk = start_resolving()
    for _ in range(3):
        assert talk.answer().asked == ["resolution"]
    assert talk.accept(resolution={"resolution": "Fixed"}).result["isError"] is False


def test_an_answer_belongs_to_the_last_question_with_its_key() -> None:
    talk = Conversation(functions_of_seeds).call("guessing").accept(guess={"name": "Caspar"})
    assert talk.requests["guess"]["params"]["message"] == "Not Caspar. What is my name?"
    assert talk.accept(guess={"name": "Rumpelstiltskin"}).text == "That is it!"


# --- the answers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("responses", [None, [], "yes", 7, {"resolution": None}, {"resolution": ["Fixed"]}])
def test_input_responses_of_another_type_are_a_protocol_error(responses: object) -> None:
    state = start_resolving().state
    params = {"name": "update_work_item", "arguments": RESOLVE_BUG, "inputResponses": responses, "requestState": state}
    status, answer = post(work_item, "tools/call", params)
    assert (status, answer["error"]["code"]) == (400, -32602)


@pytest.mark.parametrize(
    "answer",
    [{}, {"action": "perhaps"}, {"action": "accept"}, {"action": "accept", "content": []}, {"role": "assistant"}],
)
def test_a_malformed_answer_repeats_the_question(answer: dict[str, Any]) -> None:
    talk = start_resolving().answer(resolution=answer)
    assert (talk.status, talk.asked) == (200, ["resolution"])


def test_only_the_question_without_an_answer_is_asked_again() -> None:
    talk = Conversation(make_version("github", "google")).call()
    assert talk.accept(google_login={"name": "googler"}).asked == ["github_login"]
    assert talk.answer().asked == ["github_login"]
    assert talk.accept(github_login=LOGIN).text == "octocat and googler"


# --- the state ----------------------------------------------------------------------------------------------------


def test_a_client_cannot_read_the_request_state() -> None:
    talk = Conversation(make_version("github", "google")).call().accept(github_login={"name": "a-planted-name"})
    body = re.sub(r"^[^.]*\.", "", talk.state)
    raw = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
    assert talk.asked == ["google_login"]
    assert b"a-planted-name" not in raw
    assert b"github" not in raw
    assert "a-planted-name" not in talk.state


@pytest.mark.parametrize("state", ["", "foo", "ks1.", "eyJyZXNvbHV0aW9uIjoiRHVwbGljYXRlIn0"])
def test_a_malformed_request_state_is_refused_and_does_not_start_a_new_call(state: str) -> None:
    talk = start_resolving().tamper(lambda _state: state)
    assert talk.status == 400
    assert talk.error == INVALID_REQUEST_STATE_ERROR


@pytest.mark.parametrize("state", [None, 7, {"resolution": "Duplicate"}, ["ks1."]])
def test_a_request_state_that_is_no_string_is_refused(state: object) -> None:
    params = {"name": "update_work_item", "arguments": RESOLVE_BUG, "requestState": state}
    assert_invalid_request_state(post(work_item, "tools/call", params))


@pytest.mark.parametrize(("method", "params"), [case[:2] for case in ASKING_REQUESTS])
def test_every_method_that_may_ask_checks_the_request_state(method: str, params: dict[str, Any]) -> None:
    assert_invalid_request_state(post(functions_of_seeds, method, params | {"requestState": "ks1.AAAA"}))


def test_a_function_that_never_asks_checks_the_request_state() -> None:
    params = {"name": "add", "arguments": {"a": 1, "b": 2}, "requestState": "ks1.AAAA"}
    assert_invalid_request_state(post(add, "tools/call", params))


def changed(state: str, position: int) -> str:
    """Change one character: the one at 60 is a part of the encrypted key, the one at -10 of the authentication tag."""
    characters = list(state)
    characters[position] = "B" if characters[position] == "A" else "A"
    return "".join(characters)


@pytest.fixture
def refusals(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Send Alice's request state five times in a way that the server refuses; return the responses' bodies."""
    with deployed(MCP_AUTH_MODE="jwt"), caplog.at_level(logging.INFO, logger="mcp_functions"):
        handler = work_item.fresh()
        alice = Conversation(handler, principal="alice").call(**RESOLVE_BUG)
        bob = Conversation(handler, principal="bob").call(**RESOLVE_BUG)
        other_arguments = Conversation(handler, principal="alice").call(**{**RESOLVE_BUG, "workItemId": 4523})
        state = alice.state
        talks = [
            bob.tamper(lambda _state: state),
            other_arguments.tamper(lambda _state: state),
            Conversation(handler, principal="alice").call(**RESOLVE_BUG).tamper(lambda _state: changed(state, -10)),
            Conversation(handler, principal="alice").call(**RESOLVE_BUG).tamper(lambda _state: changed(state, 60)),
            alice.later(days=7, seconds=1).answer(),
        ]
    assert [talk.status for talk in talks] == [400] * 5
    return [str(talk.rounds[-1][1]["body"]) for talk in talks]


def test_the_client_gets_the_same_error_for_every_reason(refusals: list[str]) -> None:
    assert len({re.sub(r'"id":\d+', '"id":0', body) for body in refusals}) == 1


@pytest.mark.usefixtures("refusals")
def test_the_log_has_the_reason_of_each_refusal(caplog: pytest.LogCaptureFixture) -> None:
    lines = [record.getMessage() for record in caplog.get_records("setup")]
    assert [line for line in lines if line.startswith("refused")] == [
        "refused: -32602 principal",
        "refused: -32602 arguments",
        "refused: -32602 tag",
        "refused: -32602 wrapped_key",
        "refused: -32602 expired",
    ]


def test_the_lifetime_of_a_state_bounds_one_round_and_not_the_conversation() -> None:
    talk = Conversation(serve(functions.hasty)).call()  # its states live for a minute
    for _ in range(3):
        assert talk.later(seconds=59).answer().asked == ["login"]


def test_a_request_state_is_refused_after_its_lifetime() -> None:
    talk = Conversation(serve(functions.hasty)).call().later(seconds=61)
    assert talk.accept(login=LOGIN).error == INVALID_REQUEST_STATE_ERROR


@pytest.mark.parametrize(
    ("method", "params"),
    [
        pytest.param("tools/call", {"name": "region_of", "arguments": {"service": "SQS"}}, id="other arguments"),
        pytest.param("tools/call", {"name": "core_types", "arguments": {}}, id="another tool"),
        pytest.param("prompts/get", {"name": "region_of", "arguments": {"service": "S3"}}, id="another method"),
        pytest.param("resources/read", {"uri": "reports://2026"}, id="a resource"),
    ],
)
def test_the_request_state_of_another_call_is_refused(method: str, params: dict[str, Any]) -> None:
    state = Conversation(functions_of_seeds).call("region_of", service="S3").state
    assert_invalid_request_state(post(functions_of_seeds, method, params | {"requestState": state}))


def test_the_request_state_of_another_function_is_refused() -> None:
    talk = start_resolving()
    other = Conversation(serve(update_work_item), function="another").call(**RESOLVE_BUG)
    assert other.tamper(lambda _state: talk.state).error == INVALID_REQUEST_STATE_ERROR


def test_functions_with_the_same_audience_accept_each_others_states() -> None:
    handler = serve(update_work_item, audience="work-items")
    one = Conversation(handler, function="one").call(**RESOLVE_BUG)
    other = Conversation(handler, function="other").call(**RESOLVE_BUG)
    other.tamper(lambda _state: one.state)
    assert other.asked == ["resolution"]


@pytest.fixture
def function_with_own_codec() -> LambdaFunction:
    """Serve a tool with an author's codec, which neither encrypts nor authenticates: the first state is "box.1"."""
    return serve(update_work_item, codec=wire.PlainCodec())


def test_under_an_authors_codec_a_state_for_other_arguments_is_refused(function_with_own_codec: LambdaFunction) -> None:
    Conversation(function_with_own_codec).call(**RESOLVE_BUG)
    other = Conversation(function_with_own_codec).call(workItemId=4523, fields=RESOLVE_BUG["fields"])
    assert other.tamper(lambda _state: "box.1").error == INVALID_REQUEST_STATE_ERROR


def test_under_an_authors_codec_an_unknown_state_is_refused(function_with_own_codec: LambdaFunction) -> None:
    talk = Conversation(function_with_own_codec).call(**RESOLVE_BUG)
    assert talk.tamper(lambda _state: "unknown").error == INVALID_REQUEST_STATE_ERROR


def test_under_an_authors_codec_an_expired_state_is_refused(function_with_own_codec: LambdaFunction) -> None:
    talk = Conversation(function_with_own_codec).call(**RESOLVE_BUG).later(days=7, seconds=1)
    assert talk.answer().error == INVALID_REQUEST_STATE_ERROR
