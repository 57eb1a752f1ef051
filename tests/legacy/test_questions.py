"""Questions to clients of 2025, with nothing held open: events in, responses out, over several containers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions import Elicit, Step, serve, tool
from mcp_functions.legacy.sealed_ids import IdSeal
from mcp_functions.protocol.errors import TemporarilyUnavailable
from mcp_functions.testing import deployed
from tests.legacy import offered
from tests.legacy.clients import Client
from tests.legacy.offered import ALL
from tests.legacy.world import DOORS, World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.testing.dynamodb import Fault
    from tests.legacy.clients import Event


@pytest.fixture(params=DOORS)
def world(request: pytest.FixtureRequest) -> World:
    return World(*ALL, door=request.param)


@pytest.fixture
def client(world: World) -> Client:
    client = world.client()
    client.initialize()
    return client


def asked(events: list[Event]) -> dict[str, Any]:
    """Take the question with which a stream ends, after it primed the client to come back."""
    assert events[0].data is None
    assert events[0].id
    assert events[0].retry
    question: dict[str, Any] = events[-1].data
    assert events[-1].id
    assert "method" in question
    return question


def text(events: list[Event]) -> str:
    """Return the text of a tool's result."""
    return str(events[-1].data["result"]["content"][0]["text"])


def waits(events: list[Event]) -> int:
    """Say for how long a client is to wait, if there was nothing for it."""
    (only,) = events
    assert only.data is None
    assert only.id
    assert only.retry
    return only.retry


def conversation(client: Client, world: World, *, fresh: bool = False) -> str:
    """Resolve a bug as a duplicate, with polls before, between and after."""
    anew = world.anew if fresh else lambda: None
    first = asked(client.call("resolve", bug=7))
    anew()
    assert waits(client.resume()) == 500
    anew()
    assert client.accept(first["id"], why="Duplicate")["statusCode"] == 202
    anew()
    second = asked(client.resume())
    anew()
    assert client.accept(second["id"], number=3)["statusCode"] == 202
    anew()
    last = client.resume()
    assert last[-1].data["id"] == client._id  # noqa: SLF001 - of the request
    return text(last)


@pytest.mark.parametrize("fresh", [False, True])
def test_two_questions_are_asked_and_heard(client: Client, world: World, fresh: bool) -> None:  # noqa: FBT001 - parametrized
    assert conversation(client, world, fresh=fresh) == "7 duplicates 3"
    assert world.ran == 3  # as often as for a client of 2026-07-28


def test_every_event_has_an_id_of_its_own(client: Client, world: World) -> None:
    conversation(client, world)
    assert len(set(client.seen)) == len(client.seen)
    assert all(len(id_) < 1500 for id_ in client.seen)  # they are headers


@pytest.mark.parametrize(("action", "said"), [("decline", "Declined"), ("cancel", "Cancelled")])
def test_a_user_who_declines_is_reported_to_the_function(client: Client, action: str, said: str) -> None:
    id_ = asked(client.call("resolve", bug=7))["id"]
    assert client.answer(id_, {"action": action})["statusCode"] == 202
    assert text(client.resume()) == f"7 stays: {said}"


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ({"error": {"code": -32603, "message": "hunter2"}}, " (it answered with JSON-RPC error -32603)"),
        ({"error": {"code": "hunter2", "message": ""}}, ""),
        ({"error": "hunter2"}, ""),
        ({"result": "hunter2"}, ""),
        ({}, ""),
    ],
)
def test_a_client_that_cannot_ask_its_user_differs_from_a_user_who_dismisses(
    client: Client, world: World, answer: dict[str, Any], shown: str, caplog: pytest.LogCaptureFixture
) -> None:
    id_, ran = asked(client.call("resolve", bug=7))["id"], world.ran
    caplog.clear()
    with caplog.at_level("DEBUG"):
        status = client.answer(id_, **answer)["statusCode"]
    if not answer:  # no response at all
        assert status == 400
        return
    assert status == 202
    last = client.resume()
    assert last[-1].data["result"]["isError"] is True
    assert text(last).startswith(
        f"Not finished: the client could not ask its user{shown}. It asks: How was bug 7 resolved?"
    )
    assert "hunter2" not in text(last) + str([vars(record) for record in caplog.records])
    assert [vars(record)["reason"] for record in caplog.records if "reason" in vars(record)] == ["client_error"]
    assert {record.levelname for record in caplog.records} == {"INFO"}
    assert world.ran == ran  # the function heard no answer


def test_an_answer_that_does_not_fit_is_asked_again(client: Client) -> None:
    id_ = asked(client.call("resolve", bug=7))["id"]
    client.accept(id_, why="Because")
    again = asked(client.resume())
    assert "Please answer again" in again["params"]["message"]
    client.accept(again["id"], why="Fixed")
    assert text(client.resume()) == "7 fixed"


@pytest.mark.parametrize("door", DOORS)
def test_a_function_that_changes_its_arguments_is_called_with_what_the_client_sent(door: str) -> None:
    @tool
    def pack(bag: dict[str, Any], *, elicit: Elicit) -> str:
        bag["things"].append("soap")
        return f"{bag['things']} {elicit('number', 'How many?', offered.Original).number}"

    client = World(pack, door=door).client()
    client.initialize()
    client.accept(asked(client.call("pack", bag={"things": ["map"]}))["id"], number=3)
    assert text(client.resume()) == "['map', 'soap'] 3"


def test_a_prompt_and_a_resource_ask_too(client: Client) -> None:
    id_ = asked(client.send("prompts/get", {"name": "brief", "arguments": {"topic": "x"}}))["id"]
    client.accept(id_, why="Fixed")
    assert client.resume()[-1].data["result"]["messages"][0]["content"]["text"] == "x: Fixed"
    id_ = asked(client.send("resources/read", {"uri": "secrets://ann"}))["id"]
    client.accept(id_, why="Fixed")
    assert client.resume()[-1].data["result"]["contents"][0]["text"] == "ann: Fixed"


def test_functions_may_ask_for_pages_models_and_roots(client: Client) -> None:
    page = asked(client.call("opened"))
    assert page["params"]["mode"] == "url"
    assert page["params"]["elicitationId"]
    client.answer(page["id"], {"action": "accept"})
    assert text(client.resume()) == "signed in"

    model = asked(client.call("sampled"))
    assert (model["method"], model["params"]["maxTokens"]) == ("sampling/createMessage", 9)
    said = {"role": "assistant", "content": {"type": "text", "text": "word"}, "model": "m"}
    client.answer(model["id"], said)
    assert text(client.resume()) == "word"

    roots = asked(client.call("rooted"))
    assert roots["method"] == "roots/list"
    client.answer(roots["id"], {"roots": [{"uri": "file:///a"}]})
    assert text(client.resume()) == "file:///a"


def test_a_client_that_refuses_sampling_gets_an_explanation(client: Client) -> None:
    id_ = asked(client.call("sampled"))["id"]
    client.answer(id_, error={"code": -1, "message": "User rejected sampling request"})
    last = client.resume()
    assert last[-1].data["result"]["isError"] is True
    assert "the client refused (it answered with JSON-RPC error -1). It asks: a message of the client's model." in text(
        last
    )


def test_questions_of_one_round_come_one_after_the_other(client: Client, world: World) -> None:
    ran = world.ran
    first = asked(client.call("both"))
    client.accept(first["id"], why="Fixed")
    second = asked(client.resume())
    assert world.ran == ran + 1  # what was answered rides in the second's id
    client.accept(second["id"], number=4)
    assert text(client.resume()) == "Fixed 4"
    assert world.ran == ran + 2


def test_progress_and_log_of_each_round_come_with_it(client: Client) -> None:
    events = client.send("tools/call", {"name": "talkative", "_meta": {"progressToken": "p"}})
    assert [event.data["method"] for event in events[1:]] == ["notifications/progress", "elicitation/create"]
    client.accept(events[-1].data["id"], why="Fixed")
    events = client.resume()
    assert [event.data.get("method") for event in events[1:]] == ["notifications/progress", None]


@pytest.mark.parametrize("again", ["again", "afterwards", "racing"])
def test_an_answer_that_is_delivered_twice_counts_once(client: Client, world: World, again: str) -> None:
    id_ = asked(client.call("resolve", bug=7))["id"]
    if again == "racing":  # the second comes while the first runs
        world.died = Once(lambda: client.accept(id_, why="Duplicate"))
    client.accept(id_, why="Fixed")
    if again == "afterwards":
        assert text(client.resume()) == "7 fixed"
    assert client.accept(id_, why="Duplicate")["statusCode"] == 202
    assert text(client.resume(client.seen[1])) == "7 fixed"
    assert world.ran == 2


@pytest.mark.parametrize("last", [False, True])
def test_one_of_two_simultaneous_answers_is_accepted(client: Client, world: World, last: bool) -> None:  # noqa: FBT001 - parametrized
    id_ = asked(client.call("resolve", bug=7) if last else client.call("both"))["id"]
    between = Once(lambda: client.accept(id_, why="Fixed"))  # after the first has read the record, before it claims it

    def weather(operation: str) -> Fault:
        if operation == "PutItem":
            between()
        return None

    world.table.weather = weather
    assert client.accept(id_, why="Duplicate")["statusCode"] == 202
    if last:
        assert text(client.resume()) == "7 fixed"
        assert world.ran == 2
    else:
        client.accept(asked(client.resume())["id"], number=1)
        assert text(client.resume()) == "Fixed 1"


def test_a_client_that_is_far_behind_gets_the_latest_events(client: Client, world: World) -> None:
    conversation(client, world)
    assert text(client.resume(client.seen[0])) == "7 duplicates 3"


def test_the_result_of_a_call_can_be_fetched_again(client: Client) -> None:
    id_ = asked(client.call("resolve", bug=7))["id"]
    before = client.seen[-1]
    client.accept(id_, why="Fixed")
    last = client.resume(before)
    assert client.resume(before)[-1].data == last[-1].data
    assert client.resume(last[0].id)[-1].data == last[-1].data  # the connection broke in the middle
    response = client.http("GET", last_event_id=last[-1].id)
    assert response["statusCode"] == 405  # nothing follows the last


def test_a_question_that_got_lost_can_be_fetched_again(client: Client) -> None:
    events = client.call("resolve", bug=7)
    again = client.resume(events[0].id)
    assert again[-1].data == events[-1].data


def test_a_client_comes_less_and_less_often_while_a_user_thinks(client: Client) -> None:
    asked(client.call("resolve", bug=7))
    retries = [waits(client.resume()) for _ in range(10)]
    assert retries == sorted(retries)
    assert (retries[0], retries[-1]) == (500, 5000)


def test_a_question_without_an_answer_ends_the_call(client: Client, world: World) -> None:
    id_ = asked(client.call("resolve", bug=7))["id"]
    world.clock.advance(901)
    assert "not answered in time" in client.resume()[-1].data["error"]["message"]
    assert client.accept(id_, why="Fixed")["statusCode"] == 202
    assert world.ran == 1
    world.clock.advance(301)
    world.table.expire(world.clock())
    assert "not answered in time" in client.resume()[-1].data["error"]["message"]


def test_a_call_that_is_cancelled_is_answered_in_vain(client: Client, world: World) -> None:
    id_ = asked(client.call("resolve", bug=7))["id"]
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": client._id}}  # noqa: SLF001
    assert client.http("POST", cancelled)["statusCode"] == 202
    assert client.accept(id_, why="Fixed")["statusCode"] == 202
    assert world.ran == 1
    assert "error" in client.resume()[-1].data
    assert client.http("POST", {**cancelled, "params": {"requestId": None}})["statusCode"] == 202


@pytest.mark.parametrize("what", ["an answer", "a resumption"])
@pytest.mark.parametrize("who", ["another user", "another session", "a forger"])
def test_a_client_cannot_answer_a_question_of_another_client(client: Client, world: World, what: str, who: str) -> None:
    id_ = asked(client.call("resolve", bug=7))["id"]
    place = client.seen[-1]
    other = world.client("mallory" if who == "another user" else "alice")
    other.initialize()
    if who == "a forger":
        id_, place = id_[:-8] + "AAAAAAAA", place[:-8] + "AAAAAAAA"
    if what == "an answer":
        assert other.accept(id_, why="Duplicate")["statusCode"] == 400
    else:
        assert other.http("GET", last_event_id=place)["statusCode"] == 404
    assert world.ran == 1
    client.accept(asked(client.resume(client.seen[0]))["id"], why="Fixed")
    assert text(client.resume()) == "7 fixed"


def test_ids_of_one_kind_are_not_accepted_as_another(client: Client) -> None:
    id_ = asked(client.call("resolve", bug=7))["id"]
    assert client.http("GET", last_event_id=id_)["statusCode"] == 404
    assert client.accept(client.seen[-1], why="Fixed")["statusCode"] == 400
    assert client.http("POST", {"jsonrpc": "2.0", "id": 5, "result": {}})["statusCode"] == 400


@pytest.mark.parametrize("step", ["asking", "answering", "running", "coming"])
@pytest.mark.parametrize("fault", ["throttled", "denied"])
def test_a_table_out_of_service_is_a_clear_error_and_no_hang(
    client: Client, world: World, step: str, fault: Fault
) -> None:
    def fails(_operation: str) -> Fault:
        return fault

    if step == "asking":
        world.table.weather = fails
        last = client.call("resolve", bug=7)
        assert "temporarily unavailable" in text(last)
        assert "How was bug 7 resolved?" in text(last)
        return
    id_ = asked(client.call("resolve", bug=7))["id"]
    if step == "running":
        world.died = Once(lambda: setattr(world.table, "weather", fails))
        assert client.accept(id_, why="Fixed")["statusCode"] == 202
        world.table.weather = lambda _operation: None
        world.clock.advance(60)
        assert client.resume()[-1].data["error"]["message"] == "The function did not answer in time"
        return
    world.table.weather = fails
    if step == "answering":
        assert client.accept(id_, why="Fixed")["statusCode"] == (503 if fault == "throttled" else 500)
        assert world.ran == 1
        world.table.weather = lambda _operation: None
        client.accept(id_, why="Fixed")
        assert text(client.resume()) == "7 fixed"
    elif fault == "throttled":
        assert waits(client.resume()) == 5000
    else:
        assert client.resume()[-1].data["error"]["code"] == -32603


def test_a_table_that_stutters_is_asked_again(client: Client, world: World) -> None:
    id_ = asked(client.call("resolve", bug=7))["id"]
    faults: list[Fault] = ["throttled", "throttled", None, "lost", None, "unanswered", "lost"]
    world.table.weather = lambda _operation: faults.pop(0) if faults else None
    assert client.accept(id_, why="Fixed")["statusCode"] == 202
    assert world.slept
    assert text(client.resume()) == "7 fixed"
    assert world.ran == 2


@pytest.mark.parametrize(
    ("called", "answer", "ran"),
    [("resolve", "Duplicate", 2), ("both", "Fixed", 1)],  # the next question of another round, and of the same
)
def test_kms_that_stutters_over_the_next_question_is_asked_again(  # noqa: PLR0913, PLR0917 - what it is about
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch, called: str, answer: str, ran: int
) -> None:
    id_ = asked(client.call(called, **({"bug": 7} if called == "resolve" else {})))["id"]
    seal, faults = IdSeal.seal, [TemporarilyUnavailable("kms:down")] * 2

    def stutters(self: IdSeal, claims: Mapping[str, Any]) -> str:
        if "rest" in claims and faults:
            raise faults.pop()
        return seal(self, claims)

    monkeypatch.setattr(IdSeal, "seal", stutters)
    assert client.accept(id_, why=answer)["statusCode"] == 202
    assert (world.slept, faults) == ([0.2, 0.4], [])
    asked(client.resume())
    assert world.ran == ran


def test_a_kms_outage_leaves_a_client_at_its_event(client: Client, world: World) -> None:
    asked(client.call("resolve", bug=7))
    world.anew()
    world.kms.failure = TemporarilyUnavailable("kms:down")
    (event,) = client.resume()
    assert (event.id, event.retry, event.data) == (client.seen[-2], 5000, None)


def test_a_function_that_dies_leaves_an_honest_error(world: World) -> None:
    client = world.client()
    client.initialize()
    id_ = asked(client.call("resolve", bug=7))["id"]
    world.died = Once(lambda: True)
    client.accept(id_, why="Fixed")
    if world.door == DOORS[0]:  # the function was also the door
        assert waits(client.resume()) == 500
        world.clock.advance(60)
    last = client.resume()[-1].data
    assert last["error"]["message"] == "The function did not answer in time"


def test_a_call_without_a_table_ends_with_an_explanation(world: World) -> None:
    client = World(*ALL, door=world.door, table="").client()
    client.initialize()
    said = text(client.call("resolve", bug=7))
    assert "How was bug 7 resolved? (why: Fixed | Duplicate)" in said
    assert "no table for questions" in said
    error = client.message("prompts/get", {"name": "brief", "arguments": {"topic": "x"}})["error"]
    assert error["code"] == -32602
    assert "Why?" in error["message"]
    error = client.message("resources/read", {"uri": "secrets://ann"})["error"]
    assert error["code"] == -32602


def test_a_page_without_a_table_is_an_error_that_the_client_acts_on(world: World) -> None:
    client = World(*ALL, door=world.door, table="").client()
    client.initialize()
    error = client.message("tools/call", {"name": "opened"})["error"]
    assert error["code"] == -32042
    (page,) = error["data"]["elicitations"]
    assert (page["mode"], page["url"]) == ("url", "https://id.example/sign-in")
    assert page["elicitationId"]


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18"])
def test_clients_that_do_not_come_back_are_asked_nothing(world: World, version: str) -> None:
    client = world.client()
    client.initialize(version)
    said = text(client.call("resolve", bug=7))
    assert "How was bug 7 resolved?" in said


@pytest.mark.parametrize("name", ["ai-sdk-mcp-client", "Visual Studio Code", "Visual Studio Code - Insiders"])
def test_a_client_that_is_known_never_to_come_back_is_asked_nothing(world: World, name: str) -> None:
    client = world.client()
    client.initialize(name=name)
    said = text(client.call("resolve", bug=7))
    assert "How was bug 7 resolved?" in said
    assert "this client does not resume a stream after the user's answer" in said


def test_a_deployment_may_ask_earlier_ones_all_the_same(world: World) -> None:
    client = World(*ALL, door=world.door, questions_since="2025-06-18").client()
    client.initialize("2025-06-18")
    question = asked(client.call("seated"))
    assert question["params"] == {
        "message": "Where?",
        "requestedSchema": {
            "type": "object",
            "properties": {"seat": {"type": "string", "enum": ["w", "a"], "enumNames": ["Window", "Aisle"]}},
        },
    }
    client.accept(question["id"], seat="a")
    assert text(client.resume()) == "a"


def test_a_deployment_may_ask_no_client_of_2025(world: World) -> None:
    client = World(*ALL, door=world.door, questions_since="2026-07-28").client()
    client.initialize()
    assert "How was bug 7 resolved?" in text(client.call("resolve", bug=7))


def test_a_client_without_capabilities_gets_the_question_in_an_explanation(world: World) -> None:
    client = world.client()
    client.initialize(capabilities={})
    said = text(client.call("resolve", bug=7))
    assert "this client did not declare support for it" in said
    assert "How was bug 7 resolved?" in said
    bare = world.client()  # without a session
    assert "How was bug 7 resolved?" in text(bare.call("resolve", bug=7))


def test_a_client_that_reads_no_streams_is_not_asked(client: Client) -> None:
    (only,) = client.send("tools/call", {"name": "resolve", "arguments": {"bug": 7}}, accept="application/json")
    said = only.data["result"]["content"][0]["text"]
    assert "How was bug 7 resolved?" in said
    assert "needs an event stream" in said


def test_a_request_id_too_long_for_a_header_gets_no_question(client: Client) -> None:
    sent = {"jsonrpc": "2.0", "id": "x" * 5000, "method": "tools/call"}
    events = client.read(client.http("POST", {**sent, "params": {"name": "resolve", "arguments": {"bug": 7}}}))
    assert "too large" in text(events)


def test_a_result_that_the_mailbox_cannot_hold_is_an_error_that_says_so(client: Client) -> None:
    id_ = asked(client.call("large"))["id"]
    client.accept(id_, why="Fixed")
    assert "too large" in client.resume()[-1].data["error"]["message"]


def test_the_same_request_id_begins_another_call(client: Client) -> None:
    first = asked(client.call("resolve", bug=7))["id"]
    place = client.seen[-1]
    client._id -= 1  # noqa: SLF001 - as a client does that takes its session over into another process
    second = asked(client.call("resolve", bug=8))["id"]
    assert client.accept(first, why="Fixed")["statusCode"] == 202  # and is in vain
    client.accept(second, why="Fixed")
    assert text(client.resume()) == "8 fixed"
    assert "error" in client.resume(place)[-1].data


def test_long_work_continues_when_the_client_reconnects(world: World) -> None:
    client = world.client()
    client.initialize()
    done: list[str] = []

    @tool(max_sheds=3)
    def long(*, elicit: Elicit, step: Step) -> str:
        """Run three steps of 20 seconds."""

        def work(part: str) -> str:
            done.append(part)
            world.clock.advance(20)
            return part

        parts = [step(f"part-{part}", work, part) for part in "abc"]
        return "".join(parts) + elicit("why", "Done?", offered.Why).why

    world.handlers = (*ALL, long)
    world.anew()
    assert waits(client.call("long")) == 500
    polls = 0
    events = client.resume()
    while events[-1].data is None:
        polls += 1
        events = client.resume()
    client.accept(events[-1].data["id"], why="Fixed")
    assert text(client.resume()) == "abcFixed"
    assert (done, polls) == (["a", "b", "c"], 1)


def test_a_question_costs_the_documented_table_requests(client: Client, world: World) -> None:
    id_ = asked(client.call("resolve", bug=7))["id"]
    assert world.table.calls == ["PutItem"]
    client.resume()
    assert world.table.calls[1:] == ["GetItem"]
    client.accept(id_, why="Fixed")
    assert world.table.calls[2:] == ["GetItem", "PutItem", "PutItem"]


def test_a_call_that_requires_a_task_is_refused_with_the_reason() -> None:
    @tool(task="required")
    def audited() -> str:
        """Work for long."""
        return "done"

    with deployed():
        client = Client(serve(audited))
        client.initialize()
        assert "runs as a task" in text(client.call("audited"))


def test_the_line_of_an_answer_and_of_a_resumption(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    id_ = asked(client.call("resolve", bug=7))["id"]
    caplog.clear()
    with caplog.at_level("INFO", "mcp_functions"):
        client.resume()
        client.accept(id_, why="Fixed")
        client.resume()
    ours = [vars(record) for record in caplog.records if "revision" in vars(record)]
    assert [(line["method"], line["outcome"], line["status"]) for line in ours] == [
        ("resume", "complete", 200),
        ("answer", "complete", 202),
        ("resume", "complete", 200),
    ]
    assert not any(secret in str(line) for line in ours for secret in (id_, client.seen[-1], str(client.session)))


def test_repeated_cancelled_and_late_messages_are_no_errors_in_the_log(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    id_ = asked(client.call("resolve", bug=7))["id"]
    other = asked(client.call("resolve", bug=8))["id"]
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": client._id}}  # noqa: SLF001
    caplog.clear()
    with caplog.at_level("INFO", "mcp_functions"):
        client.accept(id_, why="Fixed")
        client.accept(id_, why="Fixed")
        client.http("POST", cancelled)
        client.accept(other, why="Fixed")
        client.resume()
    ours = [record for record in caplog.records if "revision" in vars(record)]
    said = [vars(record)["reason"] for record in ours if "reason" in vars(record)]
    assert said == ["answered_before", "cancelled", "answered_late", "nothing_waits"]
    assert {record.levelname for record in ours} == {"INFO"}


def test_a_function_that_serves_itself_asks_with_its_own_key_and_table() -> None:
    with deployed():
        client = Client(serve(offered.resolve))
        client.initialize()
        id_ = asked(client.call("resolve", bug=7))["id"]
        client.accept(id_, why="Fixed")
        assert text(client.resume()) == "7 fixed"


class Once:
    """Does something the first time it is asked, and nothing afterwards; what it does says whether a function dies."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self._act: Callable[[], Any] | None = act

    def __call__(self) -> bool:
        act, self._act = self._act, None
        return act() is True if act else False
