"""Tasks end correctly although workers die, pause, run twice or never start, and although the table is unavailable."""

from __future__ import annotations

import io
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from mcp_functions import observability, serve
from mcp_functions.http.gateway import WorkFailed
from mcp_functions.tasks import Worker, WorkerInvoker
from mcp_functions.testing import WITH_TASKS, Conversation, deployed
from tests.support import filters, wire
from tests.tasks.jobs import DONE, JOBS, MEANWHILE, required
from tests.tasks.world import Client, World, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_functions.observability import Notes
    from mcp_functions.rounds.audit import AuditRecord
    from mcp_functions.testing.dynamodb import Fault

YES = {"yes": True}


class Killed(KeyboardInterrupt):
    """The process is gone."""


@pytest.fixture
def world() -> World:
    DONE.clear()
    MEANWHILE.clear()
    return World(*JOBS)


@pytest.fixture
def told() -> Iterator[list[Notes]]:
    """Collect the notes on each request."""
    notes: list[Notes] = []
    token = observability.listener.set(notes.append)
    yield notes
    observability.listener.reset(token)


@pytest.fixture
def alice(world: World) -> Client:
    return Client(world)


def during(number: int, happens: Callable[[], object]) -> None:
    """Let something happen in the step of this number, once."""

    def once(done: list[str]) -> None:
        if len(done) == number:
            MEANWHILE.clear()
            happens()

    MEANWHILE.append(once)


def die() -> None:
    raise Killed


def killed(world: World) -> None:
    with pytest.raises(Killed):
        world.work()


def test_a_worker_that_dies_is_noticed_by_its_lease_and_the_next_poll_calls_another(
    world: World, alice: Client
) -> None:
    task = alice.begin("counted", count=4)
    during(3, die)
    killed(world)
    assert DONE == ["part 0", "part 1", "part 2"]
    alice.get(task)
    assert not world.summoned  # it might be alive
    world.clock.advance(30)
    assert alice.get(task)["status"] == "working"
    assert alice.get(task)["status"] == "working"
    assert world.work() == 1
    assert alice.get(task)["result"]["structuredContent"] == 4
    assert DONE == ["part 0", "part 1", "part 2", "part 2", "part 3"]  # only what was not recorded ran again


def test_a_step_that_runs_again_has_the_same_key(world: World, alice: Client) -> None:
    task = alice.begin("keyed")
    during(1, die)
    world.table.weather = lambda operation: die() if operation == "PutItem" and len(DONE) == 1 else None
    killed(world)
    world.table.weather = lambda _operation: None
    world.clock.advance(30)
    alice.get(task)
    world.work()
    first, second = DONE
    assert first == second
    assert alice.get(task)["status"] == "input_required"


def test_only_one_of_two_workers_works(world: World, alice: Client) -> None:
    task = alice.begin("counted", count=2)
    world.summoned.append(world.summoned[0])
    during(1, lambda: world.come(world.summoned.popleft()))
    world.work()
    assert DONE == ["part 0", "part 1"]
    assert alice.get(task)["status"] == "completed"


def test_a_worker_that_slept_through_its_lease_acts_and_writes_no_more(world: World, alice: Client) -> None:
    task = alice.begin("counted", count=4)

    def sleep() -> None:
        world.clock.advance(31)
        alice.get(task)
        world.work()

    during(2, sleep)
    world.work()
    ended = alice.get(task)
    assert ended["result"]["structuredContent"] == 4
    assert DONE == ["part 0", "part 1", "part 1", "part 2", "part 3"]


def test_a_worker_whose_expired_lease_no_other_took_continues(world: World, alice: Client) -> None:
    task = alice.begin("counted", count=3)
    MEANWHILE.append(lambda _done: world.clock.advance(200))
    world.work()
    assert alice.get(task)["status"] == "completed"
    assert len(DONE) == 3


def test_work_beyond_lambdas_timeout_continues_in_another_invocation_after_its_last_step(
    world: World, alice: Client
) -> None:
    task = alice.begin("counted", count=9)
    MEANWHILE.append(lambda _done: world.clock.advance(250))
    assert world.work(900) == 3
    assert [f"part {part}" for part in range(9)] == DONE
    assert alice.get(task)["status"] == "completed"


def test_a_lost_invocation_is_repeated_after_growing_pauses(world: World, alice: Client) -> None:
    task = alice.begin("required")
    called = [0.0]
    for second in range(59):
        world.clock.advance(1)
        world.summoned.clear()
        alice.get(task)
        if world.summoned:
            called.append(second + 1.0)
    assert called == [0.0, 15.0]
    assert [round(later - sooner) for sooner, later in pairwise(called)] == [15]


def test_repeated_deaths_of_workers_at_one_place_end_the_task_and_say_so(
    world: World, alice: Client, told: list[Notes]
) -> None:
    task = alice.begin("counted", count=3)
    for _ in range(5):
        MEANWHILE[:] = [lambda done: die() if done[-1] == "part 1" else None]
        killed(world)
        world.clock.advance(30)
        assert alice.get(task)["status"] == "working"
    killed(world)
    world.clock.advance(30)
    alice.get(task)
    world.work()
    ended = alice.get(task)
    assert (ended["status"], ended["error"]["code"]) == ("failed", -32603)
    assert "again and again" in ended["statusMessage"]
    lines = [(line.outcome, line.reason) for line in told if line.method == "work"]
    assert lines[-1] == ("failed", "worker_gave_up")
    assert filters.counted([{"handler": "counted", "outcome": "failed", "reason": lines[-1][1]}])["Crashed"] == 1
    assert DONE.count("part 1") == 6  # the first of them came a step further: that one began the count anew
    assert DONE.count("part 0") == 1


def test_a_function_without_progress_is_given_up(world: World, alice: Client) -> None:
    task = alice.begin("low")
    assert world.work() < 15
    assert alice.get(task)["status"] == "failed"


def test_a_task_whose_worker_died_while_it_was_cancelled_is_cancelled_by_the_next_poll(
    world: World, alice: Client
) -> None:
    task = alice.begin("counted", count=3)

    def cancelled_and_killed() -> None:
        alice.cancel(task)
        die()

    during(2, cancelled_and_killed)
    killed(world)
    assert alice.get(task)["status"] == "working"
    world.clock.advance(30)
    assert alice.get(task)["status"] == "cancelled"
    assert not world.summoned


def test_each_concurrent_step_is_recorded(world: World, alice: Client) -> None:
    task = alice.begin("parallel")
    world.work()
    assert text(alice.get(task)["result"]) == "LEFT RIGHT"
    assert sorted(DONE) == ["left", "right"]


def test_a_keyed_step_needs_no_extra_round_in_a_task(world: World, alice: Client) -> None:
    task = alice.begin("keyed")
    assert world.work() == 1
    assert list(alice.get(task)["inputRequests"]) == ["ok"]


# ---- The table


def test_a_worker_retries_a_table_that_is_briefly_unavailable(world: World, alice: Client) -> None:
    task = alice.begin("counted", count=3)
    away: Iterator[Fault] = iter([None, None, "throttled", "throttled"])
    during(1, lambda: setattr(world.table, "weather", lambda _operation: next(away, None)))
    world.work()
    assert alice.get(task)["status"] == "completed"
    assert len(DONE) == 3
    assert world.slept


def test_a_table_that_stays_unavailable_fails_the_worker_and_the_next_poll_continues(
    world: World, alice: Client, caplog: pytest.LogCaptureFixture
) -> None:
    task = alice.begin("counted", count=3)
    during(2, lambda: setattr(world.table, "weather", lambda _operation: "throttled"))
    with pytest.raises(WorkFailed, match=r"^$"):
        world.work()
    assert "table:ThrottlingException" in caplog.text
    assert alice.error("tasks/get", {"taskId": task})["data"] == {"retryable": True}
    assert alice.response["statusCode"] == 503
    world.table.weather = lambda _operation: None
    world.clock.advance(31)
    alice.get(task)
    world.work()
    assert alice.get(task)["status"] == "completed"


def test_no_response_names_a_task_that_is_not_stored(world: World, alice: Client) -> None:
    world.table.weather = lambda operation: "unanswered" if operation == "PutItem" else None
    alice.error("tools/call", {"name": "required", "arguments": {}})
    assert alice.response["statusCode"] == 503
    assert (world.table.items, list(world.summoned)) == ({}, [])


def test_a_stored_write_without_a_response_makes_one_task(world: World, alice: Client) -> None:
    faults: Iterator[Fault] = iter(["lost", "lost"])
    world.table.weather = lambda operation: next(faults, None) if operation == "PutItem" else None
    task = alice.begin("required")
    world.work()
    assert alice.get(task)["status"] == "completed"
    assert len(world.table.items) == 2  # the task, and the list of what is open


def test_an_item_that_does_not_open_is_an_unknown_task(world: World, alice: Client) -> None:
    task = alice.begin("required")
    for item in world.table.items.values():
        item["sealed"] = {"S": "bm90aGluZw=="}
    assert alice.error("tasks/get", {"taskId": task})["message"] == "Unknown task"
    world.work()
    assert DONE == []


def test_the_tasks_of_a_removed_tool_are_unknown(world: World, alice: Client) -> None:
    task = alice.begin("required")
    del world.tasks.tools["required"]
    assert alice.error("tasks/get", {"taskId": task})["message"] == "Unknown task"
    world.work()
    assert DONE == []


# ---- The lease


def test_a_step_that_takes_longer_than_the_lease_keeps_it(world: World, alice: Client) -> None:
    world.clock.at = time.time()
    task = alice.begin("counted", count=2)
    quick = Worker(world.tasks.tools, world.tasks.store, now=time.time, lease_seconds=0.06)
    seen = set[str]()

    def wait_for_renewals() -> None:
        while len(seen) < 4:
            seen.update(item["version"]["N"] for key, item in world.table.items.items() if "/task/" in key)
            time.sleep(0.005)

    during(1, wait_for_renewals)
    order = dict(zip(("id", "owner"), world.summoned.popleft(), strict=True))
    quick.work(order, wire.Context(remaining_ms=900_000))
    assert DONE == ["part 0", "part 1"]
    assert alice.get(task)["status"] == "completed"


# ---- The fence: what a worker that slept through its lease would write, if it could

SLEEPS = {"record": 2, "renew": 1, "result": 1, "fail": 1, "ask": 1, "pause": 3}  # in which of the things that it does


def called(world: World, alice: Client, task: str) -> None:
    """Let the lease end, and a poll notice it: another worker is on its way."""
    world.clock.advance(31)
    assert alice.get(task)["status"] == "working"
    assert world.summoned


def taken_over(world: World, alice: Client, task: str) -> None:
    """Let another worker take the task, and stop in the middle of its work: its lease has just begun."""
    called(world, alice, task)
    MEANWHILE[:] = [lambda _done: die()]
    killed(world)
    MEANWHILE.clear()


@pytest.mark.parametrize("instead", [called, taken_over])
@pytest.mark.parametrize("when", ["while it works", "between its read and its write"])
@pytest.mark.parametrize("writes", SLEEPS)
def test_a_sleeping_worker_writes_nothing_after_it_is_given_up(
    world: World, alice: Client, writes: str, when: str, instead: Callable[[World, Client, str], None]
) -> None:
    task = alice.begin("musing", then=writes)
    left: list[Any] = []

    def sleep() -> None:
        world.table.weather = lambda _operation: None
        instead(world, alice, task)
        left.extend([stored(world), list(world.summoned), list(DONE)])
        world.clock.advance(16)  # so that its lease has grown old, and it would renew it

    def sleep_before_the_next_write() -> None:
        world.clock.advance(16)
        world.table.weather = lambda operation: sleep() if operation == "PutItem" else None

    asleep = sleep if when == "while it works" else sleep_before_the_next_write
    during(SLEEPS[writes], asleep)
    world.come(world.summoned.popleft())
    assert [stored(world), list(world.summoned), DONE] == left


def lose_question_write(world: World, client: Client, task: str, *, reads: int) -> None:
    """Let a worker write its question without learning that it has, and let the client answer it meanwhile."""

    def trouble() -> Iterator[Fault]:
        yield from [None] * reads
        yield "lost"  # the table stores the question, but the worker gets no response
        yield "throttled"  # the worker cannot read back whether it was stored
        world.table.weather = lambda _operation: None
        client.accept(task, ok=YES)  # the client answers before the worker tries again
        yield None

    faults = trouble()
    during(1, lambda: setattr(world.table, "weather", lambda _operation: next(faults)))


def test_an_answered_question_with_an_unconfirmed_write_is_not_asked_again(world: World, alice: Client) -> None:
    task = alice.begin("musing", then="ask")

    lose_question_write(world, alice, task, reads=1)
    world.come(world.summoned.popleft())
    assert alice.get(task)["status"] == "working"
    world.work()
    assert text(alice.get(task)["result"]) == "True"


# ---- The author's audit: it records each question before a client can see the question


def audited() -> tuple[World, Client, list[AuditRecord]]:
    told: list[AuditRecord] = []
    DONE.clear()
    MEANWHILE.clear()
    world = World(*JOBS, audit=told.append)
    return world, Client(world), told


def rounds(told: list[AuditRecord]) -> list[tuple[int, dict[str, str], dict[str, str]]]:
    """Return number, questions and answers of each round of the task. The first record belongs to the call."""
    return [(record.round, dict(record.asked), dict(record.answered)) for record in told[1:]]


def test_a_question_with_an_unconfirmed_write_is_audited_as_asked() -> None:
    world, alice, told = audited()
    task = alice.begin("musing", then="ask")

    # With an audit the worker reads twice: before it calls the audit it checks that it still owns the task.
    lose_question_write(world, alice, task, reads=2)
    world.work()
    assert text(alice.get(task)["result"]) == "True"
    assert rounds(told) == [(1, {"ok": "Ok?"}, {}), (2, {}, {"ok": "accept"})]


@pytest.mark.parametrize("raised", [OSError, SystemExit])
def test_a_question_that_the_audit_cannot_record_is_not_asked(
    raised: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    world, alice, told = audited()

    def full(_record: AuditRecord) -> None:
        told.append(_record)
        if len(told) > 1:
            message = "the ledger is full of secrets"
            raise raised(message)

    world = World(*JOBS, audit=full)
    alice = Client(world)
    task = alice.begin("musing", then="ask")
    world.work()
    ended = alice.get(task)
    assert (ended["status"], ended["error"]["code"]) == ("failed", -32603)
    assert "secrets" not in caplog.text
    assert rounds(told) == [(1, {"ok": "Ok?"}, {})]  # the audit wrote this line before it raised


def test_a_worker_that_lost_its_task_calls_no_audit() -> None:
    world, alice, told = audited()
    task = alice.begin("musing", then="ask")
    during(1, lambda: taken_over(world, alice, task))
    world.come(world.summoned.popleft())
    assert rounds(told) == []
    world.clock.advance(31)
    alice.get(task)
    world.work()
    assert rounds(told) == [(1, {"ok": "Ok?"}, {})]


def test_a_question_cancelled_before_it_is_sent_is_not_asked() -> None:
    world, alice, told = audited()
    task = alice.begin("musing", then="ask")
    during(1, lambda: alice.cancel(task))
    world.work()
    assert rounds(told) == [(1, {}, {})]


def test_a_question_cancelled_during_the_audit_is_withdrawn() -> None:
    world, alice, told = audited()
    task = ""

    def tell(record: AuditRecord) -> None:
        told.append(record)
        if record.asked:
            alice.cancel(task)

    world = World(*JOBS, audit=tell)
    alice = Client(world)
    task = alice.begin("musing", then="ask")
    world.work()
    assert alice.get(task)["status"] == "cancelled"
    assert rounds(told) == [(1, {"ok": "Ok?"}, {}), (1, {}, {})]  # the same round again: the last word counts


def stored(world: World) -> dict[str, Any]:
    """Return the task's item as the table holds it, with its version."""
    (item,) = (item for key, item in world.table.items.items() if "/task/" in key)
    return dict(item)


# ---- Calling a worker


class Lambda:
    """Lambda's Invoke API, as far as a summons needs it."""

    def __init__(self, error: Exception | None = None) -> None:
        self.invoked: list[dict[str, Any]] = []
        self._error = error

    def invoke(self, **request: Any) -> dict[str, Any]:  # noqa: ANN401 - boto3's
        self.invoked.append(request)
        if self._error:
            raise self._error
        return {"StatusCode": 202, "Payload": io.BytesIO()}


def test_a_worker_is_called_asynchronously_by_its_name() -> None:
    client = Lambda()
    WorkerInvoker("local_work-worker", lambda: client)("work.1", None)
    assert client.invoked == [
        {
            "FunctionName": "local_work-worker",
            "InvocationType": "Event",
            "Payload": b'{"mcpTask": {"id": "work.1", "owner": null}}',
        }
    ]


@pytest.mark.parametrize("qualifier", ["", ":live"])
def test_a_worker_is_called_by_the_qualifier_of_its_function(qualifier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Lambda()
    monkeypatch.setattr("mcp_functions.tasks.lambda_client", lambda: client)
    with deployed(MCP_QUALIFIER=qualifier):
        talk = Conversation(serve(required), capabilities=WITH_TASKS).call()
    assert talk.task_id
    assert [request["FunctionName"] for request in client.invoked] == [f"local_required-worker{qualifier}"]


def test_a_worker_that_was_called_by_an_alias_runs() -> None:
    with deployed(MCP_QUALIFIER=":live"):
        assert Conversation(serve(required), capabilities=WITH_TASKS).call().poll().text == "WORK"


def test_a_worker_that_cannot_be_called_is_logged_and_its_task_is_stored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    throttled = ClientError({"Error": {"Code": "TooManyRequestsException", "Message": "secret"}}, "Invoke")
    WorkerInvoker("local_work-worker", lambda: Lambda(throttled))("work.1", None)
    assert caplog.messages == ["no worker: invoke_TooManyRequestsException"]
