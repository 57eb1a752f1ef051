"""SEP-1858, multi-turn SSE: its example, its client, and attacks on its turns."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from mcp_functions import serve
from mcp_functions.dialects import sep_1858
from mcp_functions.protocol.constants import META_CLIENT_REVISION
from mcp_functions.protocol.errors import InvalidRequestState
from mcp_functions.seal.keyring import Keyring
from tests.dialects.clients import Client, MultiTurnClient, accept
from tests.dialects.functions import ALL_HANDLERS, WORKED
from tests.dialects.wires import Events
from tests.legacy.clients import Client as LegacyClient
from tests.support import wire
from tests.support.strict_kms import START, Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.seal.keys import WrappedKey

    Over = Callable[..., Events]

DIALECTS = "sep-1858"
RESOLVE: dict[str, Any] = {
    "name": "update_work_item",
    "arguments": {"workItemId": 4522, "fields": {"System.State": "Resolved"}},
}
BOTH = {"name": "both", "arguments": {}}


def fill(request: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in the form of a question according to its message."""
    match request["params"]["message"]:
        case message if "How was this bug resolved?" in message:
            return accept(resolution="Duplicate")
        case message if "which work item is the original" in message:
            return accept(duplicateOfId=4301)
        case message:
            return accept(name=message[0].lower())


def begun(wire_to: Over, call: Mapping[str, Any] = RESOLVE, **who: Any) -> tuple[MultiTurnClient, list[Any], str]:  # noqa: ANN401 - see `wire_to`
    client = MultiTurnClient(wire_to(**who))
    turn = client.turn(client.request("tools/call", call))
    assert turn is not None
    return client, *turn


def respond(requests: list[Any]) -> list[dict[str, Any]]:
    return [{"jsonrpc": "2.0", "id": one["id"], "result": fill(one)} for one in requests]


# ---- As the document says


def test_a_turn_has_the_events_of_sep_1858_in_their_order(wire_to: Over) -> None:
    client, requests, event_id = begun(wire_to)
    text = client.replies[0].text
    first, second, third = text.removesuffix("\n\n").split("\n\n")
    # "These events are data-less events, having just an event ID"
    assert first.split("\n")[0] == "event: buffer_input"
    assert third.split("\n") == ["event: input_required", f"id: {event_id}"]
    assert [len(data_less.split("\n")) for data_less in (first, third)] == [2, 2]
    assert second.startswith("event: message\nid: ")
    (request,) = requests
    assert request.keys() == {"jsonrpc", "id", "method", "params"}
    assert request["method"] == "elicitation/create"


def test_the_request_with_the_last_answers_returns_the_result_of_the_call(wire_to: Over) -> None:
    client = MultiTurnClient(wire_to())
    last = client.run("tools/call", RESOLVE, fill)
    assert last["id"] == 1, "the result answers the call"
    assert last["result"]["content"][0]["text"] == (
        "Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created."
    )
    wire.check(last, "tools/call")
    assert [reply.status for reply in client.replies] == [200, 200, 200], "never 202"
    kinds = [reply.headers["content-type"] for reply in client.replies]
    assert kinds == ["text/event-stream", "text/event-stream", "application/json"]


def test_all_requests_of_a_round_are_answered_with_one_array(wire_to: Over) -> None:
    client = MultiTurnClient(wire_to())
    assert client.run("tools/call", BOTH, fill)["result"]["content"][0]["text"] == "a b c"
    assert len(client.replies) == 3


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("prompts/get", {"name": "greeting"}, "Say hello to t."),
        ("resources/read", {"uri": "reports://2025"}, "2025, read by w"),
    ],
)
def test_prompts_and_resources_have_turns_too(wire_to: Over, method: str, params: dict[str, Any], message: str) -> None:
    last = MultiTurnClient(wire_to()).run(method, params, fill)
    wire.check(last, method)
    assert message in str(last["result"])


def test_sep_1858_sends_progress_before_a_sampling_request(wire_to: Over) -> None:
    client = MultiTurnClient(wire_to())
    params = {"name": "sampled", "arguments": {}, "_meta": {"progressToken": "p"}}
    said = {"role": "assistant", "content": {"type": "text", "text": "tree"}, "model": "m"}
    last = client.run("tools/call", params, lambda _request: said)
    assert last["result"]["content"][0]["text"] == "tree"
    assert [event["event"] for event in client.replies[0].events] == [
        "message", "buffer_input", "message", "input_required",
    ]  # fmt: skip
    # the next turn uses the metadata of the call, too
    assert [message.get("method") for message in client.replies[1].messages] == ["notifications/progress", None]


def test_the_client_answers_a_turn_without_a_question_with_an_empty_array(wire_to: Over) -> None:
    WORKED.clear()
    client, requests, event_id = begun(wire_to, {"name": "sheds", "arguments": {}})
    assert requests == []
    assert client.answer([], event_id).messages[0]["result"]["content"][0]["text"] == "3"
    assert WORKED == [1, 2]


def test_a_call_without_questions_gets_the_same_response_as_without_the_dialect(wire_to: Over) -> None:
    call = {"name": "plain", "arguments": {"number": 7}}
    reply = MultiTurnClient(wire_to()).request("tools/call", call)
    assert reply.headers["content-type"] == "application/json"
    wire.check(reply.messages[0], "tools/call")


def test_every_event_has_a_unique_id(wire_to: Over) -> None:
    texts = [MultiTurnClient(wire_to()).request("tools/call", RESOLVE) for _ in range(2)]
    ids = [event["id"] for reply in texts for event in reply.events]
    assert len(set(ids)) == len(ids) == 6


# ---- Who asked for it, and who did not


@pytest.mark.parametrize("experimental", [{}, {"sep-1858": True}, {"sep-9999": {}}, [], {"sep_1858": {}}])
def test_a_client_without_the_declaration_gets_the_released_revision(wire_to: Over, experimental: Any) -> None:  # noqa: ANN401 - JSON
    client = Client(wire_to(), None)
    client.capabilities = {**client.capabilities, "experimental": experimental}
    (message,) = client.request("tools/call", RESOLVE).messages
    assert message["result"]["resultType"] == "input_required"
    wire.check(message, "tools/call")


def test_a_question_that_the_client_cannot_show_is_not_sent(wire_to: Over) -> None:
    client = MultiTurnClient(wire_to())
    client.capabilities = {"experimental": {"sep-1858": {}}}
    assert client.request("tools/call", RESOLVE).messages[0]["result"]["isError"] is True


# ---- What comes back


def test_another_container_continues_with_the_answers_in_any_order(wire_to: Over) -> None:
    client, requests, event_id = begun(wire_to, BOTH, fresh=True)
    turn = client.turn(client.answer(list(reversed(respond(requests))), event_id))
    assert turn is not None
    assert [one["params"]["message"] for one in turn[0]] == ["C?"]


def test_a_missing_answer_is_asked_again_and_the_other_is_kept(wire_to: Over) -> None:
    client, requests, event_id = begun(wire_to, BOTH)
    turn = client.turn(client.answer(respond(requests)[:1], event_id))
    assert turn is not None
    assert [one["params"]["message"] for one in turn[0]] == ["B?"]


def test_an_answer_without_a_question_is_ignored(wire_to: Over) -> None:
    client, requests, event_id = begun(wire_to, BOTH)
    stray: list[dict[str, Any]] = [{"jsonrpc": "2.0", "id": id_, "result": {}} for id_ in ("nobody", 7)]
    turn = client.turn(client.answer([*stray, *respond(requests)], event_id))
    assert turn is not None
    assert [one["params"]["message"] for one in turn[0]] == ["C?"]


def test_repeated_answers_get_the_same_turn(wire_to: Over) -> None:
    client, requests, event_id = begun(wire_to)
    turns = [client.turn(client.answer(respond(requests), event_id)) for _ in range(2)]
    assert [turn[0][0]["params"]["message"] for turn in turns if turn] == [
        "Since this is a duplicate, which work item is the original?"
    ] * 2


@pytest.mark.parametrize(
    ("call", "method"),
    [(RESOLVE, "elicitation/create"), ({"name": "sampled", "arguments": {}}, "sampling/createMessage")],
)
def test_a_client_that_fails_to_ask_ends_the_call_with_an_error_that_says_so(
    wire_to: Over, call: dict[str, Any], method: str
) -> None:
    client, requests, event_id = begun(wire_to, call)
    failed = {"jsonrpc": "2.0", "id": requests[0]["id"], "error": {"code": -1, "message": "no window"}}
    reply = client.answer([failed], event_id)
    assert (reply.status, reply.messages[0]["error"]["code"]) == (200, -32602)
    assert reply.messages[0]["error"]["message"].startswith(f"The client answered {method} with an error")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda responses: [*responses, responses[0]],
        lambda responses: [{**responses[0], "error": {"code": 1, "message": ""}}],
        lambda responses: [{**responses[0], "result": "yes"}],
        lambda responses: [{"id": responses[0]["id"], "result": {}}],
        lambda responses: [*responses, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}],
        lambda responses: responses[0],
        lambda responses: [responses],
    ],
)
def test_responses_that_are_not_an_array_are_refused(wire_to: Over, spoil: Callable[[Any], Any]) -> None:
    client, requests, event_id = begun(wire_to)
    reply = client.answer(spoil(respond(requests)), event_id)
    assert (reply.status, reply.messages[0]["error"]["code"]) == (400, -32600)
    assert "id" not in reply.messages[0]


def test_an_array_without_the_header_gets_an_error_that_names_it(wire_to: Over) -> None:
    client, requests, _event_id = begun(wire_to)
    for reply in (client.post(respond(requests)), client.answer(respond(requests), "")):
        assert reply.status == 400
        assert "Last-Event-ID" in reply.messages[0]["error"]["message"]


def test_answers_of_another_revision_are_refused(wire_to: Over) -> None:
    client, requests, event_id = begun(wire_to)
    for version in ("2025-11-25", ""):
        headers = {"last-event-id": event_id, "mcp-protocol-version": version}
        assert client.post(respond(requests), headers).messages[0]["error"]["code"] == -32020


# ---- The seal


def refused(client: MultiTurnClient, responses: object, event_id: str) -> None:
    reply = client.answer(responses, event_id)
    assert reply.status == 400
    assert reply.messages[0]["error"] == {
        "code": -32602,
        "message": "Invalid or expired requestState",
        "data": {"reason": "invalid_request_state"},
    }


@pytest.mark.parametrize(
    "forge",
    [
        lambda id_: f"{id_}A",
        lambda id_: id_[:-9],
        lambda id_: id_.replace("all.", "", 1),
        lambda id_: id_.replace("all.", "other.", 1),
        lambda id_: id_.replace("all.", "all.all.", 1),
        lambda _id: "4",
        lambda _id: "all.4",
    ],
)
def test_a_forged_event_id_is_refused(wire_to: Over, forge: Callable[[str], str]) -> None:
    client, requests, event_id = begun(wire_to)
    refused(client, respond(requests), forge(event_id))


def test_event_ids_of_two_oauth_clients_are_charged_to_their_one_person(
    wire_to: Over, monkeypatch: pytest.MonkeyPatch
) -> None:
    _client, requests, event_id = begun(wire_to, who="alice")
    charged: list[str] = []

    def refuse_key(
        _keys: Keyring, _wrapped_key: WrappedKey, _decrypt: object, *, caller: str, max_age: float
    ) -> NoReturn:
        assert max_age > 0
        charged.append(caller)
        reason = "wrapped_key"
        raise InvalidRequestState(reason)

    monkeypatch.setattr(Keyring, "open", refuse_key)
    for who, oauth_client in (("alice", "c"), ("alice", "d"), ("bob", "c")):
        events = wire_to(who)
        events.oauth_client = oauth_client
        refused(MultiTurnClient(events), respond(requests), event_id)
    assert charged[0] == charged[1] != charged[2]


def test_the_id_of_an_earlier_event_of_the_turn_is_refused(wire_to: Over) -> None:
    client, requests, _event_id = begun(wire_to)
    for event in client.replies[0].events[:-1]:
        refused(client, respond(requests), event["id"])


def test_another_principals_event_id_is_refused(wire_to: Over) -> None:
    _client, requests, event_id = begun(wire_to, who="alice")
    refused(MultiTurnClient(wire_to("bob")), respond(requests), event_id)


def test_an_event_id_expires_with_its_state(wire_to: Over) -> None:
    clock = Clock(START)
    client, requests, event_id = begun(wire_to, {"name": "both", "arguments": {}}, clock=clock)
    clock.advance(599)
    assert client.turn(client.answer(respond(requests), event_id)) is not None
    clock.advance(2)
    refused(client, respond(requests), event_id)


def test_a_request_state_is_not_accepted_as_an_event_id_nor_the_reverse(wire_to: Over) -> None:
    client, requests, event_id = begun(wire_to)
    (modern,) = Client(wire_to(), None).request("tools/call", RESOLVE).messages
    refused(client, respond(requests), f"all.{modern['result']['requestState']}")
    sealed = event_id.removeprefix("all.")
    (message,) = Client(wire_to(), None).request("tools/call", {**RESOLVE, "requestState": sealed}).messages
    assert message["error"]["data"] == {"reason": "invalid_request_state"}


def test_an_event_id_does_not_show_the_call(wire_to: Over) -> None:
    _client, _requests, event_id = begun(wire_to)
    assert "workItemId" not in event_id
    assert event_id.isascii()
    assert event_id.isprintable()


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "long", "arguments": {"text": "x" * 5000}}),
        ("resources/read", {"uri": f"long://{'x' * 5000}"}),
    ],
)
def test_a_state_too_large_for_a_header_is_refused_with_the_remedy(
    wire_to: Over, caplog: pytest.LogCaptureFixture, method: str, params: dict[str, Any]
) -> None:
    caplog.set_level(logging.INFO)
    (message,) = MultiTurnClient(wire_to()).request(method, params).messages
    told = str(message)
    assert "more to remember than it can carry" in told
    assert "keep references" in sep_1858.TOO_LARGE
    assert sep_1858.TOO_LARGE in caplog.text, "the author hears of the remedy"
    assert "xxxx" not in caplog.text
    if method == "tools/call":
        assert message["result"]["isError"] is True
        wire.check(message, method)
    else:
        assert message["error"]["code"] == -32602
    (released,) = Client(wire_to(), None).request(method, params).messages
    assert released["result"]["resultType"] == "input_required", "in a body there is room"


def test_an_event_id_of_a_small_conversation_leaves_room_for_a_token(wire_to: Over) -> None:
    client, _requests, event_id = begun(wire_to)
    assert len(event_id) < sep_1858.MAX_EVENT_ID / 2
    turn = client.turn(client.answer(respond(_requests), event_id))
    assert turn is not None
    assert len(turn[1]) < sep_1858.MAX_EVENT_ID / 2


# ---- Where it is not spoken


def test_a_server_without_the_dialect_ignores_its_requests() -> None:
    from mcp_functions_harness.testing import deployed

    with deployed(MCP_DIALECTS=None):
        client = MultiTurnClient(Events(serve(*ALL_HANDLERS)))
        (message,) = client.request("tools/call", RESOLVE).messages
        assert message["result"]["resultType"] == "input_required"
        reply = client.answer([{"jsonrpc": "2.0", "id": "1", "result": {}}], "all.x")
        assert reply.messages[0]["error"]["code"] == -32600


def test_a_forwarded_request_of_a_2025_client_is_answered_as_without_the_dialect(wire_to: Over) -> None:
    client = MultiTurnClient(wire_to())
    (message,) = client.request("tools/call", {**RESOLVE, "_meta": {META_CLIENT_REVISION: "2025-11-25"}}).messages
    assert message["result"]["resultType"] == "input_required"


def test_a_client_of_2025_gets_responses_of_its_revision_even_if_it_declares_a_dialect() -> None:
    client = LegacyClient(serve(*ALL_HANDLERS), context=wire.Context("local_mcp"))
    client.initialize(capabilities={"elicitation": {}, "experimental": {"sep-1858": {}}})
    told = [event.data for event in client.call(RESOLVE["name"], **RESOLVE["arguments"]) if event.data]
    assert told[0]["method"] == "elicitation/create"
    assert "input_required" not in client.response["body"]
