"""The seeds' requirements of a server, one sentence after the other; requirements.toml maps sentences to tests.

This file omits the sentences that a sample function's own test already proves.
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
from mcp_functions.protocol.messages import Principal
from mcp_functions.testing import Conversation, deployed
from tests.seeds import functions
from tests.seeds.functions import version
from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.http.gateway import LambdaFunction

RESOLVE = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
DUPLICATE = {"resolution": "Duplicate"}
FROZEN = {"code": -32602, "message": "Invalid or expired requestState", "data": {"reason": "invalid_request_state"}}
LOGIN = {"name": "octocat"}
served = functions.handler


def resolving() -> Conversation:
    return Conversation(work_item).call(**RESOLVE)


def post(handler: LambdaFunction, method: str, params: dict[str, Any], **options: Any) -> tuple[int, dict[str, Any]]:  # noqa: ANN401 - as wire takes them
    sent = wire.message(method, params, **options)
    response = handler(wire.event(sent), wire.Context(f"local-{handler.handlers[0].name}"))
    return response["statusCode"], wire.read(response, method)


# --- which requests may be answered with a question ---------------------------------------------------------------

ASKING: list[tuple[str, dict[str, Any], str]] = [
    ("tools/call", {"name": "region_of", "arguments": {"service": "S3"}}, "region"),
    ("prompts/get", {"name": "greeting"}, "language"),
    ("resources/read", {"uri": "reports://2026"}, "reader"),
    ("resources/read", {"uri": "reports://latest"}, "reader"),
]


@pytest.mark.parametrize(("method", "params", "key"), ASKING, ids=["tool", "prompt", "template", "static"])
def test_tools_prompts_and_resources_ask_and_are_answered(method: str, params: dict[str, Any], key: str) -> None:
    _status, asked = post(served, method, params)
    assert asked["result"]["resultType"] == "input_required"
    assert list(asked["result"]["inputRequests"]) == [key]
    content = {"name": "octocat", "region": "eu-central-1"}
    retry = {"inputResponses": {key: {"action": "accept", "content": content}}}
    state = {"requestState": asked["result"]["requestState"]}
    _status, answered = post(served, method, params | retry | state)
    assert answered["result"]["resultType"] == "complete"


OTHERS = ["server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list"]
REMOVED = [
    *("ping", "initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"),
    *("tasks/get", "tasks/list", "tasks/result", "tasks/cancel", "tasks/input_response"),
]


@pytest.mark.parametrize("method", OTHERS)
def test_no_other_request_is_answered_with_a_question(method: str) -> None:
    """Not even one that carries the fields of a retry."""
    state = post(served, "prompts/get", {"name": "greeting"})[1]["result"]["requestState"]
    for params in ({}, {"inputResponses": {}, "requestState": state}):
        status, answer = post(served, method, params)
        assert (status, answer["result"]["resultType"]) == (200, "complete")


def test_a_completion_is_not_a_place_to_ask() -> None:
    reference = {"type": "ref/resource", "uri": "reports://{year}"}
    params = {"ref": reference, "argument": {"name": "year", "value": "20"}, "inputResponses": {}}
    _status, answer = post(served, "completion/complete", params)
    assert answer["result"]["resultType"] == "complete"
    assert answer["result"]["completion"]["values"] == ["2025", "2026"]


@pytest.mark.parametrize("method", REMOVED)
def test_a_request_that_the_revision_does_not_have_is_unknown(method: str) -> None:
    status, answer = post(served, method, {"taskId": "t", "inputResponses": {}})
    assert (status, answer["error"]["code"]) == (404, -32601)


def test_the_wish_for_a_task_is_ignored_and_the_call_is_answered_at_once() -> None:
    """SEP-2322's `params.task`: "clients do not signal task preference on the request itself" (released extension)."""
    _status, answer = post(add, "tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}, "task": {"ttl": 1}})
    assert answer["result"]["content"] == [{"type": "text", "text": "3"}]
    assert "task" not in answer["result"]


# --- the result ---------------------------------------------------------------------------------------------------


def test_a_question_after_progress_is_the_last_message_of_its_stream() -> None:
    meta = {"progressToken": "p1"}
    sent = wire.message("tools/call", {"name": "counted", "arguments": {}}, meta=meta)
    response = served(wire.event(sent), wire.Context("local-core_types"))
    assert response["headers"]["content-type"] == "text/event-stream"
    progress, asked = wire.messages(response)
    assert progress["method"] == "notifications/progress"
    assert asked["result"]["resultType"] == "input_required"
    assert response["body"].rstrip("\n").endswith(json.dumps(asked, ensure_ascii=False, separators=(",", ":")))


def test_a_question_alone_is_a_single_response_and_no_stream() -> None:
    _sent, response = resolving().rounds[0]
    assert response["headers"]["content-type"] == "application/json"


def test_nothing_that_we_send_is_a_request() -> None:
    """A question is part of a result: nothing in it could be answered on its own."""
    meta = {"progressToken": 7}
    sent = wire.message("tools/call", {"name": "counted", "arguments": {}}, meta=meta)
    response = served(wire.event(sent), wire.Context("local-core_types"))
    for said in wire.messages(response):
        assert not {"id", "method"} <= said.keys()
    for asked in wire.messages(response)[-1]["result"]["inputRequests"].values():
        assert asked.keys() == {"method", "params"}


def test_every_question_comes_with_a_state() -> None:
    talk = resolving().accept(resolution=DUPLICATE)
    for _sent, response in talk.rounds:
        assert json.loads(response["body"])["result"].keys() >= {"inputRequests", "requestState"}


def test_a_round_that_ends_with_neither_question_nor_state_is_the_authors_error_and_no_message() -> None:
    talk = Conversation(served).call("asks_nothing_at_all")
    assert (talk.status, talk.result["isError"]) == (200, True)


UNDECLARED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("form", {"sampling": {}, "roots": {}}, {"elicitation": {}}),
    ("form", {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
    ("url", {"elicitation": {}}, {"elicitation": {"url": {}}}),
    ("url", {"elicitation": {"form": {}}}, {"elicitation": {"url": {}}}),
    ("sampling", {"elicitation": {}}, {"sampling": {}}),
    ("sampling.tools", {"sampling": {}}, {"sampling": {"tools": {}}}),
    ("roots", {"elicitation": {}}, {"roots": {}}),
]


@pytest.mark.parametrize(("kind", "declared", "lacking"), UNDECLARED)
def test_what_the_client_did_not_declare_is_not_asked(
    kind: str, declared: dict[str, Any], lacking: dict[str, Any]
) -> None:
    talk = Conversation(served, capabilities=declared).call("asks_for", kind=kind)
    assert (talk.status, talk.error["code"]) == (400, -32021)
    assert talk.error["data"] == {"requiredCapabilities": lacking}


@pytest.mark.parametrize("kind", ["form", "url", "sampling", "sampling.tools", "roots"])
def test_what_the_client_declared_is_asked(kind: str) -> None:
    assert Conversation(served).call("asks_for", kind=kind).asked == ["asked"]


# --- each request stands alone ------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", [(1, 2), ("first", "second"), (1, 1)])
def test_nothing_hangs_on_the_id_of_a_request(ids: tuple[Any, Any]) -> None:
    """New for each retry, as it must be; and a client that forgets is not confused with another."""
    params = {"name": "update_work_item", "arguments": RESOLVE}
    _status, asked = post(work_item, "tools/call", params, id=ids[0])
    retry = {
        "inputResponses": {"resolution": {"action": "accept", "content": {"resolution": "Fixed"}}},
        "requestState": asked["result"]["requestState"],
    }
    _status, answer = post(work_item, "tools/call", params | retry, id=ids[1])
    assert (asked["id"], answer["id"]) == ids
    assert answer["result"]["resultType"] == "complete"


def test_conversations_in_parallel_do_not_mix() -> None:
    one, other = resolving(), resolving()
    one.accept(resolution=DUPLICATE)
    assert other.accept(resolution={"resolution": "Fixed"}).text.startswith("Bug #4522 resolved as Fixed.")
    assert one.accept(duplicate_of={"duplicateOfId": 4301}).text.startswith("Bug #4522 resolved as Duplicate")


def test_a_client_that_never_comes_back_leaves_nothing_undone_and_nothing_done() -> None:
    functions.ACTED_FOR.clear()
    for _ in range(3):
        Conversation(served).call("act")
    assert functions.ACTED_FOR == []
    assert Conversation(served).call("act").accept(login=LOGIN).text == "done"
    assert functions.ACTED_FOR == ["octocat"]


def test_a_question_is_asked_as_often_as_it_takes() -> None:
    talk = resolving()
    for _ in range(3):
        assert talk.answer().asked == ["resolution"]
    assert talk.accept(resolution={"resolution": "Fixed"}).result["isError"] is False


def test_a_question_under_the_same_key_takes_the_answer_to_what_was_asked_last() -> None:
    talk = Conversation(served).call("guessing")
    for wrong in ("Caspar", "Melchior"):
        talk.accept(guess={"name": wrong})
        assert talk.requests["guess"]["params"]["message"] == f"Not {wrong}. What is my name?"
    assert talk.accept(guess={"name": "Rumpelstiltskin"}).text == "That is it!"


# --- the answers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("responses", [None, [], "yes", 7, {"resolution": None}, {"resolution": ["Fixed"]}])
def test_what_is_no_input_responses_object_is_a_protocol_error(responses: object) -> None:
    state = resolving().state
    params = {"name": "update_work_item", "arguments": RESOLVE, "inputResponses": responses, "requestState": state}
    status, answer = post(work_item, "tools/call", params)
    assert (status, answer["error"]["code"]) == (400, -32602)


def test_malformed_json_is_a_protocol_error() -> None:
    headers = wire.headers(wire.message("tools/call", {"name": "update_work_item"}))
    event = wire.event('{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {', headers=headers)
    response = work_item(event, wire.Context("local-update_work_item"))
    assert (response["statusCode"], json.loads(response["body"])["error"]["code"]) == (400, -32700)


@pytest.mark.parametrize(
    "answer",
    [{}, {"action": "perhaps"}, {"action": "accept"}, {"action": "accept", "content": []}, {"role": "assistant"}],
)
def test_an_answer_that_cannot_be_read_is_asked_for_again(answer: dict[str, Any]) -> None:
    talk = resolving().answer(resolution=answer)
    assert (talk.status, talk.asked) == (200, ["resolution"])


def test_unknown_answers_and_unknown_fields_are_ignored() -> None:
    known = {"action": "accept", "content": {**DUPLICATE, "surprise": 1}, "mood": "good"}
    talk = resolving().answer(resolution=known, stranger={"action": "accept", "content": {"x": 1}})
    assert talk.asked == ["duplicate_of"]


def test_an_answer_that_is_missing_is_requested_again_and_the_others_are_kept() -> None:
    talk = Conversation(version("github", "google")).call()
    assert talk.accept(google_login={"name": "googler"}).asked == ["github_login"]
    assert talk.answer().asked == ["github_login"]
    assert talk.accept(github_login=LOGIN).text == "octocat and googler"


# --- the state ----------------------------------------------------------------------------------------------------


def test_what_a_state_holds_cannot_be_read_from_it() -> None:
    talk = Conversation(version("github", "google")).call().accept(github_login={"name": "a-planted-name"})
    body = re.sub(r"^[^.]*\.", "", talk.state)
    raw = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
    assert talk.asked == ["google_login"]
    assert b"a-planted-name" not in raw
    assert b"github" not in raw
    assert "a-planted-name" not in talk.state


def test_a_damaged_state_is_refused_and_never_taken_for_a_first_call() -> None:
    for damaged in ("", "foo", "ks1.", "eyJyZXNvbHV0aW9uIjoiRHVwbGljYXRlIn0"):
        talk = resolving().tamper(lambda _token, damaged=damaged: damaged)  # type: ignore[misc]  # bound at once
        assert (talk.status, talk.error) == (400, FROZEN)


@pytest.mark.parametrize("state", [None, 7, {"resolution": "Duplicate"}, ["ks1."]])
def test_a_state_that_is_no_string_is_refused_alike(state: object) -> None:
    params = {"name": "update_work_item", "arguments": RESOLVE, "requestState": state}
    status, answer = post(work_item, "tools/call", params)
    assert (status, answer["error"]) == (400, FROZEN)


@pytest.mark.parametrize(("method", "params"), [case[:2] for case in ASKING])
def test_a_state_is_checked_on_every_method_that_may_ask(method: str, params: dict[str, Any]) -> None:
    status, answer = post(served, method, params | {"requestState": "ks1.AAAA"})
    assert (status, answer["error"]) == (400, FROZEN)


def test_a_state_is_checked_where_nobody_would_have_read_it() -> None:
    params = {"name": "add", "arguments": {"a": 1, "b": 2}, "requestState": "ks1.AAAA"}
    status, answer = post(add, "tools/call", params)
    assert (status, answer["error"]) == (400, FROZEN)


def test_every_cause_of_a_refusal_reads_the_same_on_the_wire_and_differs_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = [1_785_000_000.0]
    with deployed(MCP_AUTH_MODE="jwt"), caplog.at_level(logging.INFO, logger="mcp_functions"):
        signed_in = serve(update_work_item, now=lambda: clock[0])
        alice, bob = (Principal("https://issuer", name, "client") for name in ("alice", "bob"))
        state = Conversation(signed_in, principal=alice).call(**RESOLVE).state

        def refused(principal: Principal, change: Callable[[str], str], **arguments: Any) -> str:  # noqa: ANN401 - JSON
            talk = Conversation(signed_in, principal=principal).call(**RESOLVE | arguments)
            sent = talk.tamper(lambda _own: change(state)).rounds[-1][1]
            assert sent["statusCode"] == 400
            return str(sent["body"])

        bodies = {
            refused(alice, lambda token: token[:-3]),
            refused(alice, lambda token: f"{token[:60]}{'A' if token[60] != 'A' else 'B'}{token[61:]}"),
            refused(bob, str),
            refused(alice, str, workItemId=4523),
        }
        clock[0] += 7 * 24 * 3600 + 1
        bodies.add(refused(alice, str))
    assert len(bodies) == 1
    reasons = {record.getMessage() for record in caplog.records if "-32602" in record.getMessage()}
    assert len(reasons) >= 4
    assert not any(state[:40] in reason for reason in reasons)


def test_a_state_lives_as_long_as_one_answer_may_take() -> None:
    clock = [1_785_000_000.0]
    talk = Conversation(serve(functions.hasty, now=lambda: clock[0])).call()
    for _ in range(3):  # "bounds per-round think time, not the whole flow"
        clock[0] += 59
        assert talk.answer().asked == ["login"]
    clock[0] += 61
    assert talk.accept(login=LOGIN).error == FROZEN


def test_a_state_belongs_to_one_tool_one_method_and_these_arguments() -> None:
    state = Conversation(served).call("region_of", service="S3").state
    others: list[tuple[str, dict[str, Any]]] = [
        ("tools/call", {"name": "region_of", "arguments": {"service": "SQS"}}),
        ("tools/call", {"name": "core_types", "arguments": {}}),
        ("prompts/get", {"name": "region_of", "arguments": {"service": "S3"}}),
        ("resources/read", {"uri": "reports://2026"}),
    ]
    for method, params in others:
        status, answer = post(served, method, params | {"requestState": state})
        assert (status, answer["error"]) == (400, FROZEN)


def test_a_state_of_another_function_is_refused_though_the_key_is_the_same() -> None:
    talk = resolving()
    elsewhere = Conversation(serve(update_work_item), function="another").call(**RESOLVE)
    assert elsewhere.tamper(lambda _own: talk.state).error == FROZEN


def test_functions_that_name_one_audience_open_each_others_states() -> None:
    one, other = (
        Conversation(serve(update_work_item, audience="work-items"), function=name) for name in ("one", "other")
    )
    state = one.call(**RESOLVE).state
    other.call(**RESOLVE).tamper(lambda _own: state)
    assert other.asked == ["resolution"]


def test_under_a_codec_of_ones_own_the_bindings_are_still_ours() -> None:
    """The codec hides nothing and proves nothing: what refuses is what the state says of its request."""
    clock = [1_785_000_000.0]
    boxed = serve(update_work_item, codec=wire.Boxes(), now=lambda: clock[0])
    talk = Conversation(boxed).call(**RESOLVE)
    assert talk.state == "box.1"
    other = Conversation(boxed).call(workItemId=4523, fields=RESOLVE["fields"])
    assert other.tamper(lambda _own: "box.1").error == FROZEN
    assert other.tamper(lambda _own: "no box of ours").error == FROZEN
    assert talk.answer().asked == ["resolution"]
    clock[0] += 7 * 24 * 3600 + 1
    assert talk.answer().error == FROZEN
