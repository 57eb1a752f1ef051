"""Unusual clients of 2025, a table that fails, and functions that return text no JSON can hold."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions import Elicit, Log, Step, serve, tool
from mcp_functions.testing import deployed
from tests.legacy import offered
from tests.legacy.clients import Client
from tests.legacy.offered import ALL
from tests.legacy.test_questions import Once, asked, text, waits
from tests.legacy.world import DOORS, World
from tests.support import wire

if TYPE_CHECKING:
    from mcp_functions.testing.dynamodb import Fault

CALL: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
ADD: dict[str, Any] = {**CALL, "params": {"name": "add", "arguments": {"a": 1, "b": 2}}}
PING: dict[str, Any] = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
TO_NOTHING: dict[str, Any] = {"jsonrpc": "2.0", "id": "none", "result": {}}


@tool(scopes=["admin"])
def guarded() -> str:
    """Do what few may do."""
    return "done"


@tool
def halved(first: bool, *, elicit: Elicit) -> str:  # noqa: FBT001 - an argument of a tool
    """Send half of a surrogate pair, in a question or in the result."""
    elicit("why", "half \ud800" if first else "Go on?", offered.Why)
    return "half \ud800"


@tool
def half() -> str:
    """Return half of a surrogate pair."""
    return "half \ud800"


@tool
def very_much(*, log: Log) -> str:
    """Say that it will say very much, and say it."""
    log.info("soon")
    return "x" * (4 * 1024 * 1024)


@pytest.fixture(params=DOORS)
def world(request: pytest.FixtureRequest) -> World:
    return World(*ALL, guarded, halved, half, very_much, door=request.param)


@pytest.fixture
def client(world: World) -> Client:
    client = world.client()
    client.initialize()
    return client


def test_an_event_that_was_seen_long_ago_is_taken_while_the_next_round_runs(client: Client, world: World) -> None:
    id_ = asked(client.call("resolve", bug=7))["id"]
    came: list[int] = []
    world.died = Once(lambda: came.append(waits(client.resume(client.seen[0]))))
    client.accept(id_, why="Fixed")
    assert came == [500]
    assert text(client.resume(client.seen[0])) == "7 fixed"


def test_an_old_event_id_continues_the_work(world: World) -> None:
    @tool(max_sheds=3)
    def long(*, elicit: Elicit, step: Step) -> str:
        """Ask, and take three steps of 20 seconds."""

        def work(part: str) -> str:
            world.clock.advance(20)
            return part

        elicit("why", "Go on?", offered.Why)
        return "".join(step(f"part-{part}", work, part) for part in "abc")

    world.handlers = (long,)
    world.anew()
    client = world.client()
    client.initialize()
    client.accept(asked(client.call("long"))["id"], why="Fixed")
    oldest = client.seen[0]
    events = client.resume(oldest)
    while events[-1].data is None:
        events = client.resume(oldest)
    assert text(events) == "abc"


def test_each_request_of_a_batch_has_its_answer_even_one_that_lacks_a_scope(world: World) -> None:
    client = world.client()
    client.initialize("2025-03-26")
    barred = {**CALL, "params": {"name": "guarded"}}
    answers = json.loads(client.http("POST", [barred, PING])["body"])
    assert [(each["id"], "error" in each) for each in answers] == [(1, True), (2, False)]
    assert client.http("POST", barred)["statusCode"] == 403  # alone, HTTP says it


def test_a_message_that_cannot_be_sent_does_not_lose_the_others(world: World) -> None:
    client = world.client()
    client.initialize("2025-03-26")
    calls = [{**ADD, "id": 1}, *({**CALL, "id": id_, "params": {"name": "half"}} for id_ in (2, 3)), {**ADD, "id": 4}]
    answers = json.loads(client.http("POST", calls)["body"])
    assert [(each["id"], each.get("error", {}).get("code")) for each in answers] == [
        (1, None), (2, -32603), (3, -32603), (4, None),
    ]  # fmt: skip


@pytest.mark.parametrize("accept", ["application/json", "application/json, text/event-stream"])
def test_results_too_large_together_become_errors_until_the_rest_fits(world: World, accept: str) -> None:
    client = world.client()
    client.initialize("2025-03-26")
    calls = [
        {**ADD, "id": 1},
        *({**CALL, "id": id_, "params": {"name": "very_much"}} for id_ in (2, 3)),
        {**ADD, "id": 4},
    ]
    said = [event.data for event in client.read(client.http("POST", calls, accept=accept))]
    answers = [each for each in said if "id" in each] if "stream" in accept else said[0]
    assert [(each["id"], "error" in each) for each in answers] == [(1, False), (2, True), (3, False), (4, False)]


def test_an_answer_to_nothing_does_not_take_a_batch_with_it(world: World) -> None:
    client = world.client()
    client.initialize("2025-03-26")
    answers = json.loads(client.http("POST", [ADD, TO_NOTHING])["body"])
    assert [each["result"]["content"][0]["text"] for each in answers] == ["3"]
    assert client.http("POST", [TO_NOTHING])["statusCode"] == 400  # nothing else is in there


@pytest.mark.parametrize("first", [True, False])
def test_half_of_a_character_is_an_error_and_no_crash_of_lambda(client: Client, first: bool) -> None:  # noqa: FBT001 - parametrized
    events = client.call("halved", first=first)
    if not first:
        client.accept(asked(events)["id"], why="Fixed")
        events = client.resume()
    assert events[-1].data["error"] == {"code": -32603, "message": "Internal error"}
    client.response["body"].encode()


def test_a_response_with_result_and_error_is_refused(client: Client, world: World) -> None:
    id_ = asked(client.call("resolve", bug=7))["id"]
    accepted, failed = {"action": "accept", "content": {"why": "Fixed"}}, {"code": -1, "message": "no"}
    assert client.answer(id_, accepted, error=failed)["statusCode"] == 400
    assert world.ran == 1
    assert client.answer(id_, accepted, error=None)["statusCode"] == 202  # as some libraries write it
    assert text(client.resume()) == "7 fixed"


def test_a_claim_that_the_table_never_confirms_runs_nothing_and_ends_in_an_honest_error(
    client: Client, world: World
) -> None:
    id_ = asked(client.call("resolve", bug=7))["id"]
    faults: list[Fault] = [None, "lost", "lost"]  # the record is found; the claim and its check get no response
    world.table.weather = lambda _operation: faults.pop(0) if faults else None
    assert client.accept(id_, why="Fixed")["statusCode"] == 202
    assert waits(client.resume()) == 500
    world.clock.advance(60)
    assert client.resume()[-1].data["error"]["message"] == "The function did not answer in time"
    assert world.ran == 1


def test_two_concurrent_calls_with_one_id_end_in_a_question_or_an_explanation(client: Client, world: World) -> None:
    client.call("resolve", bug=7)
    other = world.client()
    other.session, other.version = client.session, client.version
    operations: list[str] = []

    def weather(operation: str) -> Fault:
        operations.append(operation)
        # It has found another call's record, and is about to replace it.
        if operation == "PutItem" and operations.count("PutItem") == 2:
            other._id = client._id - 1  # noqa: SLF001 - as two processes do that share a session
            other.call("resolve", bug=9)
        return None

    client._id -= 1  # noqa: SLF001
    world.table.weather = weather
    assert "temporarily unavailable" in text(client.call("resolve", bug=8))
    other.accept(asked(other.resume(other.seen[0]))["id"], why="Fixed")
    assert text(other.resume()) == "9 fixed"


def test_an_unreadable_call_record_blocks_no_later_call(client: Client, world: World) -> None:
    id_ = asked(client.call("resolve", bug=7))["id"]
    for item in world.table.items.values():
        item["sealed"]["S"] = item["sealed"]["S"][:-8] + "AAAAAAAA"
    assert client.accept(id_, why="Fixed")["statusCode"] == 202
    assert "error" in client.resume()[-1].data
    client._id -= 1  # noqa: SLF001 - the same request once more
    assert "temporarily unavailable" in text(client.call("resolve", bug=7))


def test_a_batch_past_its_deadline_is_not_run_to_its_end(world: World) -> None:
    ran: list[int] = []

    @tool
    def slow(number: int) -> str:
        """Work for eight seconds."""
        ran.append(number)
        world.clock.advance(8)
        return "done"

    world.handlers = (slow,)
    world.anew()
    client = world.client()
    client.initialize("2025-03-26")
    called = [{**CALL, "id": each, "params": {"name": "slow", "arguments": {"number": each}}} for each in range(20)]
    answers = json.loads(client.http("POST", called)["body"])
    assert [each["id"] for each in answers if "result" in each] == ran
    assert {str(each["error"]["data"]) for each in answers if "error" in each} == {"{'retryable': True}"}
    assert len(ran) < 5


def test_a_question_is_not_asked_whose_answer_would_be_too_large_for_the_server(world: World) -> None:
    @tool
    def wordy(text: str, *, elicit: Elicit) -> str:
        """Ask after many log messages."""
        return text[:1] + elicit("why", "Why?", offered.Why).why

    client = World(wordy, door=world.door, max_body_bytes=65_536).client()
    client.initialize()
    id_ = asked(client.call("wordy", text="y" * 20_000))["id"]
    assert client.accept(id_, why="Fixed")["statusCode"] == 202
    assert text(client.resume()) == "yFixed"
    assert "too large" in text(client.call("wordy", text="y" * 50_000))


@pytest.mark.parametrize("params", [["add"], "add", 0])
def test_an_answer_with_the_method_of_a_call_and_malformed_params_is_an_answer(client: Client, params: object) -> None:
    response = client.http("POST", {**TO_NOTHING, "method": "tools/call", "params": params})
    assert response == client.http("POST", TO_NOTHING)


def test_many_answers_at_once_count_once(client: Client, world: World) -> None:
    id_ = asked(client.call("resolve", bug=7))["id"]
    together = Barrier(6)

    def answers() -> int:
        other = world.client()
        other.session, other.version = client.session, client.version
        together.wait()
        return int(other.accept(id_, why="Fixed")["statusCode"])

    with ThreadPoolExecutor(6) as pool:
        came = [future.result() for future in [pool.submit(answers) for _ in range(6)]]
    assert came == [202] * 6
    assert world.ran == 2
    assert text(client.resume()) == "7 fixed"


class Drawers:
    """A custom seal that ignores labels: a value sealed under one label opens under any label."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def seal(self, payload: bytes) -> str:
        token = f"drawer-{len(self.kept)}"
        self.kept[token] = payload
        return token

    def unseal(self, token: str) -> bytes:
        return self.kept[token]


def test_a_token_of_one_kind_does_not_open_as_another_kind() -> None:
    drawers = Drawers()
    with deployed():
        client = Client(serve(offered.resolve, codec=drawers))
        client.initialize()
        question = asked(client.call("resolve", bug=7))["id"]
        session, events = client.session, set(client.seen)
        for token in list(drawers.kept):  # sessions, events, questions, states, and an item of the table
            client.session = token
            assert (client.http("POST", PING)["statusCode"] == 200) == (token == session)
            client.session = session
            assert (client.http("GET", last_event_id=token)["statusCode"] == 200) == (token in events)
            if token != question:
                assert client.accept(token, why="Fixed")["statusCode"] == 400
            state = wire.message("tools/call", {"name": "resolve", "arguments": {"bug": 7}, "requestState": token})
            answer = client.function(wire.event(state), client.context)
            assert (answer["statusCode"] == 200) == drawers.kept[token].startswith(b'{"v":1,"aud"')


def test_polling_more_often_than_asked_is_not_an_error(client: Client, world: World) -> None:
    id_ = asked(client.call("resolve", bug=7))["id"]
    came = [waits(client.resume()) for _ in range(10)]
    assert came[-1] == 5000
    client.accept(id_, why="Fixed")
    assert text(client.resume()) == "7 fixed"
    assert world.ran == 2


def test_an_answer_in_a_batch_whose_time_is_up_is_not_taken_and_may_come_again(world: World) -> None:
    world = World(*ALL, door=world.door, questions_since="2025-03-26")
    client = world.client()
    client.initialize("2025-03-26")
    ids = [asked(client.call("sampled"))["id"] for _ in range(2)]
    said = {"role": "assistant", "content": {"type": "text", "text": "hm"}, "model": "m"}
    answers = [{"jsonrpc": "2.0", "id": id_, "result": said} for id_ in ids]
    world.died = Once(lambda: world.clock.advance(27.5))
    assert client.http("POST", answers)["statusCode"] == 503
    assert world.ran == 3  # of the two, one was taken
    assert client.http("POST", answers)["statusCode"] == 202
    assert world.ran == 4


def test_a_batchs_change_of_its_session_reaches_the_client(world: World) -> None:
    client = world.client()
    client.initialize("2025-03-26")
    before, level = client.session, {"method": "logging/setLevel", "params": {"level": "error"}}
    assert len(client.call("told")) == 2
    assert client.http("POST", [{"jsonrpc": "2.0", "id": 1, **level}, PING])["statusCode"] == 200
    assert client.session != before
    assert len(client.call("told")) == 1


@pytest.mark.parametrize(
    ("version", "tool", "why"),
    [
        ("2025-03-26", "resolve", "this client's revision has no request for it"),  # no revision before June asks users
        ("2025-06-18", "opened", "this client's revision has no request for it"),
        ("2025-06-18", "resolve", "they do not resume streams"),
    ],
)
def test_a_declared_capability_of_a_later_revision_is_not_reported_as_missing(
    world: World, version: str, tool: str, why: str
) -> None:
    client = world.client()
    client.initialize(version)
    said = text(client.call(tool, **({"bug": 7} if tool == "resolve" else {})))
    assert why in said
    assert "did not declare" not in said


def test_the_items_of_a_call_expire_soon_after_its_question(client: Client, world: World) -> None:
    for bug in range(3):
        asked(client.call("resolve", bug=bug))
    kept = [int(item["expires"]["N"]) for item in world.table.items.values()]
    assert kept == [int(world.clock()) + 900 + 300] * 3
