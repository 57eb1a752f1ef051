"""SEP-1685, `state` beside the server's request: its examples, its client, and attacks on the state."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.dialects.clients import Client, StateClient, accept
from tests.dialects.functions import WORKED
from tests.support import wire
from tests.support.strict_kms import START, Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.dialects.wires import Events, Reply

    Over = Callable[..., Events]

DIALECTS = "sep-1685"
EXAMPLES = Path(__file__).with_name("examples")
RESOLVE = {"name": "update_work_item", "arguments": {"workItemId": 4522, "fields": {"System.State": "Resolved"}}}
BOTH = {"name": "both", "arguments": {}}
OPTIONS = [0, 1, 2]
ANSWERS = {
    "Resolving Bug #4522 requires a resolution. How was this bug resolved?": accept(resolution="Duplicate"),
    "Since this is a duplicate, which work item is the original?": accept(duplicateOfId=4301),
}


def fill(request: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in the form of a question according to its message."""
    message = request["params"]["message"]
    return ANSWERS.get(message) or accept(name=message[0].lower())


def text(message: Mapping[str, Any]) -> str:
    return str(message["result"]["content"][0]["text"])


def refused(reply: Reply) -> None:
    assert reply.status == 400
    assert reply.messages[-1]["error"] == {
        "code": -32602,
        "message": "Invalid or expired requestState",
        "data": {"reason": "invalid_request_state"},
    }


# ---- As the document says


@pytest.mark.parametrize("objects", [False, True])
def test_the_azure_devops_rounds_equal_the_messages_of_sep_1685(wire_to: Over, *, objects: bool) -> None:
    # These may differ: ids and `jsonrpc`, which the document leaves out; `mode` and `_meta`, as in tests/seeds; and the
    # state, which holds more than the document's, sealed, and goes with the first question too.
    document = json.loads((EXAMPLES / "sep-1685-update-work-item.json").read_text(encoding="utf-8"))
    client = StateClient(wire_to(), objects=objects)
    last = client.request(document[0]["method"], document[0]["params"]).messages[-1]
    for request, response in zip(document[1:-1:2], document[2:-1:2], strict=True):
        assert type(last["state"]) is (dict if objects else str)
        expected = deepcopy(request)
        expected["params"]["mode"] = "form"
        assert last == {"jsonrpc": "2.0", "id": last["id"], **expected, "state": last["state"]}
        sent = {"jsonrpc": "2.0", "id": last["id"], **response, "state": last["state"]}
        last = client.post(sent).messages[-1]
    assert last["result"]["content"] == document[-1]["result"]["content"]
    wire.check(last, "tools/call")


@pytest.mark.parametrize("option", [1, 2])
def test_the_messages_of_both_options_have_the_members_that_sep_1685_shows(wire_to: Over, option: int) -> None:
    document = json.loads((EXAMPLES / f"sep-1685-option-{option}.json").read_text(encoding="utf-8"))
    client = StateClient(wire_to(), option, objects=True)
    last = client.request("tools/call", BOTH).messages[-1]
    asked, told = last["dependent_requests"], document[0]["dependent_requests"]
    assert last.keys() == {"jsonrpc", *document[0]}
    assert asked.keys() == told.keys()
    for one in asked["requests"]:
        assert one.keys() == {"method", *told["requests"][0]}
        assert one["params"].keys() - {"mode"} == told["requests"][0]["params"].keys()
    given, sent = document[1]["dependent_responses"], client.responses(asked, fill)
    assert sent.keys() == given.keys()
    assert sent["responses"][0].keys() == given["responses"][0].keys()
    last = client.request("tools/call", BOTH, dependent_responses=sent).messages[-1]
    assert [one["params"]["message"] for one in last["dependent_requests"]["requests"]] == ["C?"]


def test_state_is_a_top_level_member_of_the_request_and_of_its_response(wire_to: Over) -> None:
    document = json.loads((EXAMPLES / "sep-1685-top-level.json").read_text(encoding="utf-8"))
    client = StateClient(wire_to())
    request = client.request("tools/call", RESOLVE).messages[-1]
    assert (list(request), list(client.response(request, fill))) == (
        ["jsonrpc", "id", "state", "method", "params"],
        list(document[1]),
    )
    assert request.keys() == document[0].keys()


@pytest.mark.parametrize("objects", [False, True])
@pytest.mark.parametrize("option", OPTIONS)
def test_a_client_of_sep_1685_completes_every_kind_of_call(wire_to: Over, option: int, *, objects: bool) -> None:
    client = StateClient(wire_to(), option, objects=objects)
    assert text(client.run("tools/call", RESOLVE, fill)).startswith("Bug #4522 resolved as Duplicate of Bug #4301")
    last = client.run("tools/call", BOTH, fill)
    assert text(last) == "a b c"
    wire.check(last, "tools/call")
    prompt = client.run("prompts/get", {"name": "greeting"}, fill)["result"]
    assert "Say hello to t." in str(prompt)
    read = client.run("resources/read", {"uri": "reports://2025"}, fill)["result"]
    assert read["contents"][0]["text"] == "2025, read by w"


@pytest.mark.parametrize("option", OPTIONS)
def test_a_ping_carries_the_state_when_a_round_asks_nothing(wire_to: Over, option: int) -> None:
    WORKED.clear()
    client = StateClient(wire_to(), option)
    call = {"name": "sheds", "arguments": {}}
    first = client.request("tools/call", call).messages[-1]
    if option == 1:
        assert first["dependent_requests"]["requests"] == []
    else:
        asked = first["dependent_requests"]["requests"] if option else [first]
        assert [one["method"] for one in asked] == ["ping"]
    WORKED.clear()
    assert text(client.run("tools/call", call, fill)) == "3"
    assert WORKED == [1, 2]


@pytest.mark.parametrize("option", OPTIONS)
def test_a_question_under_the_empty_key_is_no_ping(wire_to: Over, option: int) -> None:
    assert text(StateClient(wire_to(), option).run("tools/call", {"name": "unnamed", "arguments": {}}, fill)) == "z"


@pytest.mark.parametrize("option", OPTIONS)
def test_sep_1685_sends_progress_before_a_sampling_request(wire_to: Over, option: int) -> None:
    client = StateClient(wire_to(), option)
    params = {"name": "sampled", "arguments": {}, "_meta": {"progressToken": "p"}}
    said = {"role": "assistant", "content": {"type": "text", "text": "tree"}, "model": "m"}
    assert text(client.run("tools/call", params, lambda _request: said)) == "tree"
    for reply in client.replies:
        assert [message.get("method") for message in reply.messages][:-1] == ["notifications/progress"]


def test_a_client_cannot_read_the_state_of_sep_1685(wire_to: Over) -> None:
    for option in OPTIONS:
        (message,) = StateClient(wire_to(), option).request("tools/call", RESOLVE).messages
        assert "ks1." in json.dumps(message)
        assert "workItemId" not in json.dumps(message)


# ---- Who asked for it, and who did not


def test_a_client_without_the_declaration_gets_the_released_revision(wire_to: Over) -> None:
    client = Client(wire_to(), None)
    (message,) = client.request("tools/call", RESOLVE).messages
    assert message["result"]["resultType"] == "input_required"
    # the released revision defines no member beside the params
    (again,) = client.request("tools/call", RESOLVE, dependent_responses={"responses": "x"}).messages
    assert again["result"]["resultType"] == "input_required"


@pytest.mark.parametrize(
    "wish", [{"option": 3}, {"option": "1"}, {"option": True}, {"option": None}, {"state": "number"}, {"state": {}}]
)
def test_invalid_options_are_refused_with_an_explanation(wire_to: Over, wish: dict[str, Any]) -> None:
    client = StateClient(wire_to())
    client.capabilities["experimental"] = {"sep-1685": wish}
    reply = client.request("tools/call", RESOLVE)
    assert (reply.status, reply.messages[0]["error"]["code"]) == (400, -32602)
    assert "option" in reply.messages[0]["error"]["message"]


# ---- A client that does not echo


def test_a_response_without_its_state_is_matched_by_its_id(wire_to: Over) -> None:
    client = StateClient(wire_to(), echoes=False)
    assert text(client.run("tools/call", BOTH, fill)) == "a b c"
    assert all('"state"' in reply.text for reply in client.replies[:-1])


@pytest.mark.parametrize("option", [1, 2])
def test_a_round_without_its_state_is_asked_again(wire_to: Over, option: int) -> None:
    client = StateClient(wire_to(), option, echoes=False)
    last = client.run("tools/call", BOTH, fill, turns=2)
    assert [one["params"]["message"] for one in last["dependent_requests"]["requests"]] == ["A?", "B?"]
    client.echoes = True
    assert text(client.run("tools/call", BOTH, fill)) == "a b c"


def test_an_answer_without_its_state_is_ignored(wire_to: Over) -> None:
    client = StateClient(wire_to(), 2)
    asked = client.request("tools/call", BOTH).messages[-1]["dependent_requests"]
    responses = client.responses(asked, fill)
    del responses["responses"][0]["state"]
    last = client.request("tools/call", BOTH, dependent_responses=responses).messages[-1]
    assert [one["params"]["message"] for one in last["dependent_requests"]["requests"]] == ["A?"]


# ---- What comes back


def test_each_response_needs_the_state_of_its_own_request_in_any_order(wire_to: Over) -> None:
    client = StateClient(wire_to(), 2)
    asked = client.request("tools/call", BOTH).messages[-1]["dependent_requests"]
    responses = client.responses(asked, fill)
    responses["responses"].reverse()
    last = client.request("tools/call", BOTH, dependent_responses=responses).messages[-1]
    assert [one["params"]["message"] for one in last["dependent_requests"]["requests"]] == ["C?"]


def test_a_question_without_a_response_is_asked_again(wire_to: Over) -> None:
    client = StateClient(wire_to(), 1)
    asked = client.request("tools/call", BOTH).messages[-1]["dependent_requests"]
    responses = client.responses(asked, fill)
    responses["responses"].pop()
    last = client.request("tools/call", BOTH, dependent_responses=responses).messages[-1]
    assert [one["params"]["message"] for one in last["dependent_requests"]["requests"]] == ["B?"]


@pytest.mark.parametrize("told", [[], "x", {}, {"responses": {}}, {"responses": ["x"]}, {"responses": None}])
@pytest.mark.parametrize("option", [1, 2])
def test_malformed_answers_are_refused(wire_to: Over, option: int, told: object) -> None:
    reply = StateClient(wire_to(), option).request("tools/call", BOTH, dependent_responses=told)
    assert (reply.status, reply.messages[0]["error"]["code"]) == (400, -32602)
    assert "dependent_responses" in reply.messages[0]["error"]["message"]


@pytest.mark.parametrize("wrong", [{"mcp-name": "both"}, {"mcp-method": "tools/list"}])
def test_a_response_under_headers_that_contradict_the_call_is_refused(wire_to: Over, wrong: dict[str, str]) -> None:
    client = StateClient(wire_to())
    right = {"mcp-name": "update_work_item", "mcp-method": "tools/call"}
    response = client.response(client.request("tools/call", RESOLVE).messages[-1], fill)
    refused_ = client.post(response, right | wrong)
    assert (refused_.status, refused_.messages[-1]["error"]["code"]) == (400, -32020)
    assert "method" in client.post(response, right).messages[-1]  # the next question


def test_a_client_that_fails_to_ask_ends_the_call_with_an_error_that_says_so(wire_to: Over) -> None:
    client = StateClient(wire_to())
    asked = client.request("tools/call", RESOLVE).messages[-1]
    error = {"code": -1, "message": "no window"}
    sent = {"jsonrpc": "2.0", "id": asked["id"], "state": asked["state"], "error": error}
    (message,) = client.post(sent).messages
    assert message["error"]["message"].startswith("The client answered elicitation/create with an error")
    assert "window" not in message["error"]["message"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda sent: {**sent, "error": {"code": 1, "message": ""}},
        lambda sent: {**sent, "result": []},
    ],
)
def test_a_response_without_result_or_error_is_refused(wire_to: Over, spoil: Callable[[Any], Any]) -> None:
    client = StateClient(wire_to())
    asked = client.request("tools/call", RESOLVE).messages[-1]
    reply = client.post(spoil(client.response(asked, fill)))
    assert (reply.status, reply.messages[0]["error"]["code"]) == (400, -32600)


# ---- The seal


@pytest.mark.parametrize(
    "forge",
    [
        lambda state: f"{state}A",
        lambda state: state.replace("all.", "", 1),
        lambda state: state.replace("all.", "other.", 1),
        lambda _state: "all.x",
        lambda _state: "",
        lambda _state: None,
        lambda _state: 7,
        lambda _state: {},
        lambda state: {"sealed": state, "more": 1},
        lambda state: {"sealed": {"sealed": state}},
    ],
)
@pytest.mark.parametrize("option", OPTIONS)
def test_a_forged_state_is_refused(wire_to: Over, option: int, forge: Callable[[str], object]) -> None:
    client = StateClient(wire_to(), option)
    asked = client.request("tools/call", BOTH).messages[-1]
    if option == 0:
        refused(client.post({**client.response(asked, fill), "state": forge(asked["state"])}))
        return
    responses = client.responses(asked["dependent_requests"], fill)
    held = responses if option == 1 else responses["responses"][0]
    held["state"] = forge(held["state"])
    refused(client.request("tools/call", BOTH, dependent_responses=responses))


def test_a_response_of_another_request_is_refused(wire_to: Over) -> None:
    client = StateClient(wire_to())
    one, other = (client.request("tools/call", RESOLVE).messages[-1] for _ in range(2))
    refused(client.post({**client.response(one, fill), "state": other["state"]}))
    refused(client.post({**client.response(one, fill), "id": "all.x"}))


def test_states_of_two_conversations_do_not_mix(wire_to: Over) -> None:
    client = StateClient(wire_to(), 2)
    one, other = (client.request("tools/call", BOTH).messages[-1]["dependent_requests"] for _ in range(2))
    responses = client.responses({"requests": [one["requests"][0], other["requests"][1]]}, fill)
    refused(client.request("tools/call", BOTH, dependent_responses=responses))


def test_a_state_of_one_option_of_sep_1685_is_refused_in_another(wire_to: Over) -> None:
    clients = [StateClient(wire_to(), option) for option in OPTIONS]
    asked = [client.request("tools/call", RESOLVE).messages[-1] for client in clients]
    states = [
        asked[0]["state"],
        asked[1]["dependent_requests"]["state"],
        asked[2]["dependent_requests"]["requests"][0]["state"],
    ]
    answer = accept(resolution="Fixed")
    for own in OPTIONS:
        for state in states[:own] + states[own + 1 :]:
            if own == 0:
                refused(clients[0].post({"jsonrpc": "2.0", "id": state, "state": state, "result": answer}))
                continue
            shared, each = ({"state": state}, {}) if own == 1 else ({}, {"state": state})
            told = {**shared, "responses": [{**each, "result": answer}]}
            refused(clients[own].request("tools/call", RESOLVE, dependent_responses=told))


def test_a_state_for_other_arguments_is_refused_in_sep_1685(wire_to: Over) -> None:
    client = StateClient(wire_to(), 1)
    asked = client.request("tools/call", RESOLVE).messages[-1]["dependent_requests"]
    other = {**RESOLVE, "arguments": {"workItemId": 1, "fields": {"System.State": "Resolved"}}}
    refused(client.request("tools/call", other, dependent_responses=client.responses(asked, fill)))


@pytest.mark.parametrize("option", OPTIONS)
def test_another_principals_state_is_refused(wire_to: Over, option: int) -> None:
    alice, bob = StateClient(wire_to("alice"), option), StateClient(wire_to("bob"), option)
    asked = alice.request("tools/call", RESOLVE).messages[-1]
    if option == 0:
        refused(bob.post(bob.response(asked, fill)))
        refused(bob.post({key: value for key, value in bob.response(asked, fill).items() if key != "state"}))
    else:
        responses = bob.responses(asked["dependent_requests"], fill)
        refused(bob.request("tools/call", RESOLVE, dependent_responses=responses))


@pytest.mark.parametrize("option", OPTIONS)
def test_a_state_expires(wire_to: Over, option: int) -> None:
    clock = Clock(START)
    client = StateClient(wire_to(clock=clock), option)
    asked = client.request("tools/call", BOTH).messages[-1]
    clock.advance(601)
    if option == 0:
        refused(client.post(client.response(asked, fill)))
    else:
        responses = client.responses(asked["dependent_requests"], fill)
        refused(client.request("tools/call", BOTH, dependent_responses=responses))


def test_another_container_continues_the_conversation(wire_to: Over) -> None:
    for option in OPTIONS:
        assert text(StateClient(wire_to(fresh=True), option).run("tools/call", RESOLVE, fill)).startswith("Bug #4522")
