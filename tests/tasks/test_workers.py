"""Tasks end correctly although workers die, pause, run twice or never start, and although the table fails.

deployment.run_workers()                      runs the workers that were invoked
on_step(3, kill_process)                      ends the process of the next worker in its third step
deployment.before_table_operation(choose)     `choose` returns a fault of the table, or None
deployment.clock.advance(LEASE_SECONDS)       a worker that did not write since then has lost its task
alice.get(task)                               a poll; it calls another worker if the last one lost the task
"""

from __future__ import annotations

import io
import time
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from mcp_functions import Progress, Step, observability, serve, tool
from mcp_functions.http.gateway import WorkFailed
from mcp_functions.tasks.task_store import WorkerInvoker
from mcp_functions.tasks.worker import Worker
from mcp_functions_harness.testing import WITH_TASKS, Conversation, deployed
from tests.support import filters, wire
from tests.support.settings import make_settings
from tests.tasks.deployment import Client, Deployment, result_text
from tests.tasks.jobs import JOBS, STARTED_STEPS, STEP_HOOKS, Killed, counted, kill_process, required

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_functions.observability import Notes
    from mcp_functions.rounds.audit import AuditRecord
    from mcp_functions_harness.testing.dynamodb import Fault

APPROVAL = {"yes": True}
LEASE_SECONDS = 30  # MCP_TASK_LEASE_SECONDS: how long a worker owns its task after it has written the task


@pytest.fixture
def notes() -> Iterator[list[Notes]]:
    """Collect the notes on each request."""
    notes: list[Notes] = []
    token = observability.listener.set(notes.append)
    yield notes
    observability.listener.reset(token)


def on_step(number: int, action: Callable[[], object]) -> None:
    """Call a function once, while the step with this number runs (from 1)."""

    def once(steps: list[str]) -> None:
        if len(steps) == number:
            STEP_HOOKS.clear()
            action()

    STEP_HOOKS.append(once)


def run_workers_until_killed(deployment: Deployment) -> None:
    with pytest.raises(Killed):
        deployment.run_workers()


def test_the_next_poll_after_the_lease_of_a_dead_worker_calls_another_worker(
    deployment: Deployment, alice: Client
) -> None:
    task = alice.start_task("counted", count=4)
    on_step(3, kill_process)
    run_workers_until_killed(deployment)
    assert STARTED_STEPS == ["part 0", "part 1", "part 2"]
    alice.get(task)
    assert not deployment.invocations  # the worker might be alive
    deployment.clock.advance(LEASE_SECONDS)
    assert alice.get(task)["status"] == "working"  # this poll calls another worker
    assert alice.get(task)["status"] == "working"  # this one calls none
    assert deployment.run_workers() == 1
    assert alice.get(task)["result"]["structuredContent"] == 4
    assert STARTED_STEPS == ["part 0", "part 1", "part 2", "part 2", "part 3"]  # only the lost step ran again


def test_a_step_that_runs_again_has_the_same_key(deployment: Deployment, alice: Client) -> None:
    def kill_before_the_step_is_recorded(operation: str) -> None:
        if operation == "PutItem" and len(STARTED_STEPS) == 1:
            kill_process()

    task = alice.start_task("keyed")
    deployment.before_table_operation(kill_before_the_step_is_recorded)
    run_workers_until_killed(deployment)
    deployment.repair_table()
    deployment.clock.advance(LEASE_SECONDS)
    alice.get(task)
    deployment.run_workers()
    first, second = STARTED_STEPS
    assert first == second
    assert alice.get(task)["status"] == "input_required"


def test_only_one_of_two_workers_runs_the_task(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("counted", count=2)
    deployment.invocations.append(deployment.invocations[0])
    on_step(1, lambda: deployment.run_worker(deployment.invocations.popleft()))
    deployment.run_workers()
    assert STARTED_STEPS == ["part 0", "part 1"]
    assert alice.get(task)["status"] == "completed"


def test_a_worker_with_an_expired_lease_runs_no_step_and_writes_nothing(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("counted", count=4)

    def sleep_while_another_worker_works() -> None:
        deployment.clock.advance(LEASE_SECONDS)
        alice.get(task)
        deployment.run_workers()

    on_step(2, sleep_while_another_worker_works)
    deployment.run_workers()
    polled = alice.get(task)
    assert polled["result"]["structuredContent"] == 4
    assert STARTED_STEPS == ["part 0", "part 1", "part 1", "part 2", "part 3"]


def test_a_worker_whose_expired_lease_no_other_took_continues(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("counted", count=3)
    STEP_HOOKS.append(lambda _steps: deployment.clock.advance(200))
    deployment.run_workers()
    assert alice.get(task)["status"] == "completed"
    assert len(STARTED_STEPS) == 3


def test_work_longer_than_the_timeout_of_lambda_continues_in_another_invocation(
    deployment: Deployment, alice: Client
) -> None:
    task = alice.start_task("counted", count=9)
    STEP_HOOKS.append(lambda _steps: deployment.clock.advance(250))
    assert deployment.run_workers(seconds=900) == 3
    assert [f"part {part}" for part in range(9)] == STARTED_STEPS
    assert alice.get(task)["status"] == "completed"


def test_a_lost_invocation_is_repeated_after_growing_pauses(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("required")
    seconds_of_invocations: list[int] = []
    for second in range(1, 60):
        deployment.clock.advance(1)
        deployment.invocations.clear()  # the invocation is lost
        alice.get(task)
        if deployment.invocations:
            seconds_of_invocations.append(second)
    assert seconds_of_invocations == [15]  # the next pause is longer than the minute


def test_a_task_that_no_worker_begins_fails_with_the_reason(
    deployment: Deployment, alice: Client, notes: list[Notes]
) -> None:
    task = alice.start_task("counted", count=4)
    polled: dict[str, Any] = {}
    for pause in (15, 60, 240):  # Lambda throttles the worker, so each invocation is lost
        deployment.invocations.clear()
        assert alice.get(task)["status"] == "working"
        deployment.clock.advance(pause)
        polled = alice.get(task)
    assert (polled["status"], polled["error"]["code"]) == ("failed", -32603)
    assert polled["statusMessage"] == "No worker continues the task"
    last = notes[-1]
    assert (last.outcome, last.reason, last.handler) == ("failed", "worker_gave_up", "counted")
    deployment.run_workers()
    assert alice.get(task)["status"] == "failed", "a worker that begins too late finds the end"


def test_a_task_whose_workers_die_repeatedly_at_one_step_fails_with_the_reason(
    deployment: Deployment, alice: Client, notes: list[Notes]
) -> None:
    task = alice.start_task("counted", count=3)
    for _ in range(5):
        STEP_HOOKS[:] = [lambda steps: kill_process() if steps[-1] == "part 1" else None]
        run_workers_until_killed(deployment)
        deployment.clock.advance(LEASE_SECONDS)
        assert alice.get(task)["status"] == "working"
    run_workers_until_killed(deployment)
    deployment.clock.advance(LEASE_SECONDS)
    alice.get(task)
    deployment.run_workers()
    polled = alice.get(task)
    assert (polled["status"], polled["error"]["code"]) == ("failed", -32603)
    assert "again and again" in polled["statusMessage"]
    lines = [(line.outcome, line.reason) for line in notes if line.method == "work"]
    assert lines[-1] == ("failed", "worker_gave_up")
    assert filters.count_metrics([{"handler": "counted", "outcome": "failed", "reason": lines[-1][1]}])["Crashed"] == 1
    # Five deaths without progress end a task. The first worker had recorded part 0, so its death does not count.
    assert STARTED_STEPS.count("part 1") == 6
    assert STARTED_STEPS.count("part 0") == 1


def test_a_task_without_progress_fails(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("low")
    assert deployment.run_workers() < 15
    assert alice.get(task)["status"] == "failed"


def test_a_task_whose_worker_died_while_it_was_cancelled_is_cancelled_by_the_next_poll(
    deployment: Deployment, alice: Client
) -> None:
    task = alice.start_task("counted", count=3)

    def cancel_and_kill() -> None:
        alice.cancel(task)
        kill_process()

    on_step(2, cancel_and_kill)
    run_workers_until_killed(deployment)
    assert alice.get(task)["status"] == "working"
    deployment.clock.advance(LEASE_SECONDS)
    assert alice.get(task)["status"] == "cancelled"
    assert not deployment.invocations


def test_each_concurrent_step_is_recorded(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("parallel")
    deployment.run_workers()
    assert result_text(alice.get(task)["result"]) == "LEFT RIGHT"
    assert sorted(STARTED_STEPS) == ["left", "right"]


def test_a_keyed_step_needs_no_extra_round_in_a_task(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("keyed")
    assert deployment.run_workers() == 1
    assert list(alice.get(task)["inputRequests"]) == ["ok"]


# ---- The table


def test_a_worker_retries_a_table_that_is_briefly_unavailable(
    deployment: Deployment, alice: Client, pauses: list[float]
) -> None:
    task = alice.start_task("counted", count=3)
    faults: Iterator[Fault] = iter([None, None, "throttled", "throttled"])
    on_step(1, lambda: deployment.before_table_operation(lambda _operation: next(faults, None)))
    deployment.run_workers()
    assert alice.get(task)["status"] == "completed"
    assert len(STARTED_STEPS) == 3
    assert pauses  # the worker paused between its attempts


def test_a_table_that_stays_unavailable_fails_the_worker_and_the_next_poll_continues(
    deployment: Deployment, alice: Client, caplog: pytest.LogCaptureFixture
) -> None:
    task = alice.start_task("counted", count=3)
    on_step(2, lambda: deployment.before_table_operation(lambda _operation: "throttled"))
    with pytest.raises(WorkFailed, match=r"^$"):
        deployment.run_workers()
    assert "table:ThrottlingException" in caplog.text
    assert alice.error("tasks/get", {"taskId": task})["data"] == {"retryable": True}
    assert alice.response["statusCode"] == 503
    deployment.repair_table()
    deployment.clock.advance(LEASE_SECONDS)
    alice.get(task)
    deployment.run_workers()
    assert alice.get(task)["status"] == "completed"


def test_no_response_names_a_task_that_is_not_stored(deployment: Deployment, alice: Client) -> None:
    deployment.before_table_operation(lambda operation: "unanswered" if operation == "PutItem" else None)
    alice.error("tools/call", {"name": "required", "arguments": {}})
    assert alice.response["statusCode"] == 503
    assert (deployment.table.items, list(deployment.invocations)) == ({}, [])


def test_a_stored_write_without_a_response_makes_one_task(deployment: Deployment, alice: Client) -> None:
    faults: Iterator[Fault] = iter(["lost", "lost"])
    deployment.before_table_operation(lambda operation: next(faults, None) if operation == "PutItem" else None)
    task = alice.start_task("required")
    deployment.run_workers()
    assert alice.get(task)["status"] == "completed"
    assert len(deployment.table.items) == 2  # the task, and the list of the user's open tasks


def test_an_item_that_does_not_open_is_an_unknown_task(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("required")
    for item in deployment.table.items.values():
        item["sealed"] = {"S": "bm90aGluZw=="}  # "nothing"
    assert alice.error("tasks/get", {"taskId": task})["message"] == "Unknown task"
    deployment.run_workers()
    assert STARTED_STEPS == []


def test_the_tasks_of_a_removed_tool_are_unknown(deployment: Deployment, alice: Client) -> None:
    task = alice.start_task("required")
    deployment.deploy(*(job for job in JOBS if job.name != "required"))
    assert alice.error("tasks/get", {"taskId": task})["message"] == "Unknown task"
    deployment.run_workers()
    assert STARTED_STEPS == []


# ---- The lease


def test_a_step_that_takes_longer_than_the_lease_keeps_it(deployment: Deployment, alice: Client) -> None:
    deployment.clock.at = time.time()  # this worker reads the real clock
    task = alice.start_task("counted", count=2)
    worker = Worker({"counted": counted}, deployment.store, make_settings(task_lease=0.06), now=time.time)
    versions: set[str] = set()  # the worker writes a new version of the item when it renews its lease

    def wait_for_renewals() -> None:
        while len(versions) < 4:
            versions.add(stored_task(deployment)["version"]["N"])
            time.sleep(0.005)

    on_step(1, wait_for_renewals)
    task_id, owner = deployment.invocations.popleft()
    worker.work({"id": task_id, "owner": owner}, wire.Context(remaining_ms=900_000))
    assert STARTED_STEPS == ["part 0", "part 1"]
    assert alice.get(task)["status"] == "completed"


# ---- A worker that sleeps longer than its lease, wakes up, and would write its task

# what the worker would write -> the step of the tool `musing` in which it sleeps
SLEEPS = {"record": 2, "renew": 1, "result": 1, "fail": 1, "ask": 1, "pause": 3}


def call_another_worker(deployment: Deployment, alice: Client, task: str) -> None:
    """Let the lease end, and a poll notice it: another worker is called, but does not run yet."""
    deployment.clock.advance(LEASE_SECONDS)
    assert alice.get(task)["status"] == "working"
    assert deployment.invocations


def let_another_worker_begin(deployment: Deployment, alice: Client, task: str) -> None:
    """Let another worker take the task, and stop in the middle of its work: its lease has just begun."""
    call_another_worker(deployment, alice, task)
    STEP_HOOKS[:] = [kill_process]
    run_workers_until_killed(deployment)
    STEP_HOOKS.clear()


@pytest.mark.parametrize("meanwhile", [call_another_worker, let_another_worker_begin])
@pytest.mark.parametrize("when", ["while it works", "between its read and its write"])
@pytest.mark.parametrize("writes", SLEEPS)
def test_a_sleeping_worker_writes_nothing_after_it_is_given_up(
    deployment: Deployment, alice: Client, writes: str, when: str, meanwhile: Callable[[Deployment, Client, str], None]
) -> None:
    task = alice.start_task("musing", then=writes)
    before_it_wakes: list[Any] = []
    half_a_lease = LEASE_SECONDS / 2 + 1  # after this time a worker renews its lease

    def sleep() -> None:
        deployment.repair_table()
        meanwhile(deployment, alice, task)
        before_it_wakes.extend([stored_task(deployment), list(deployment.invocations), list(STARTED_STEPS)])
        deployment.clock.advance(half_a_lease)

    def sleep_before_the_next_write() -> None:
        deployment.clock.advance(half_a_lease)
        deployment.before_table_operation(lambda operation: sleep() if operation == "PutItem" else None)

    on_step(SLEEPS[writes], sleep if when == "while it works" else sleep_before_the_next_write)
    deployment.run_worker(deployment.invocations.popleft())
    assert [stored_task(deployment), list(deployment.invocations), STARTED_STEPS] == before_it_wakes


def lose_question_write(deployment: Deployment, client: Client, task: str, *, reads: int) -> None:
    """Let a worker write its question without a response of the table, and let the client answer the question.

    The worker reads its task some times (`reads`) before it writes the question.
    """

    def faults_of_operations() -> Iterator[Fault]:
        yield from [None] * reads
        yield "lost"  # the table stores the question, but the worker gets no response
        yield "throttled"  # the worker cannot read back whether it was stored
        deployment.repair_table()
        client.accept(task, ok=APPROVAL)  # the client answers before the worker tries again
        yield None

    faults = faults_of_operations()
    on_step(1, lambda: deployment.before_table_operation(lambda _operation: next(faults)))


def test_an_answered_question_with_an_unconfirmed_write_is_not_asked_again(
    deployment: Deployment, alice: Client
) -> None:
    task = alice.start_task("musing", then="ask")

    lose_question_write(deployment, alice, task, reads=1)
    deployment.run_worker(deployment.invocations.popleft())
    assert alice.get(task)["status"] == "working"
    deployment.run_workers()
    assert result_text(alice.get(task)["result"]) == "True"


# ---- The author's audit: it records each question before a client can see the question


def deploy_with_audit() -> tuple[Deployment, Client, list[AuditRecord]]:
    records: list[AuditRecord] = []
    deployment = Deployment(*JOBS, audit=records.append)
    return deployment, Client(deployment), records


def rounds(records: list[AuditRecord]) -> list[tuple[int, dict[str, str], dict[str, str]]]:
    """Return number, questions and answers of each round of a task, without the call that began the task."""
    return [(record.round, dict(record.asked), dict(record.answered)) for record in records[1:]]


def test_a_question_with_an_unconfirmed_write_is_audited_as_asked() -> None:
    deployment, alice, records = deploy_with_audit()
    task = alice.start_task("musing", then="ask")

    # With an audit the worker reads twice: before it calls the audit it checks that it still owns the task.
    lose_question_write(deployment, alice, task, reads=2)
    deployment.run_workers()
    assert result_text(alice.get(task)["result"]) == "True"
    assert rounds(records) == [(1, {"ok": "Ok?"}, {}), (2, {}, {"ok": "accept"})]


@pytest.mark.parametrize("raised", [OSError, SystemExit])
def test_a_question_that_the_audit_cannot_record_is_not_asked(
    raised: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    records: list[AuditRecord] = []

    def audit(record: AuditRecord) -> None:
        records.append(record)
        if len(records) > 1:  # the first record is that of the call
            message = "the ledger is full of secrets"
            raise raised(message)

    deployment = Deployment(*JOBS, audit=audit)
    alice = Client(deployment)
    task = alice.start_task("musing", then="ask")
    deployment.run_workers()
    polled = alice.get(task)
    assert (polled["status"], polled["error"]["code"]) == ("failed", -32603)
    assert "secrets" not in caplog.text
    assert rounds(records) == [(1, {"ok": "Ok?"}, {})]  # the audit wrote this line before it raised


def test_a_task_whose_progress_is_too_large_for_the_table_runs_once() -> None:
    runs: list[str] = []

    @tool(task="required")
    def report(*, step: Step, progress: Progress) -> str:
        """Report too much."""
        runs.append("run")
        step("work", int)
        progress(1, message="x" * 400_000)
        return "done"

    deployment = Deployment(report, audit=lambda _record: None)
    alice = Client(deployment)
    task = alice.start_task("report")
    deployment.run_workers()
    assert "more data than a task can keep" in result_text(alice.get(task)["result"])
    assert runs == ["run"]


def test_a_worker_that_lost_its_task_calls_no_audit() -> None:
    deployment, alice, records = deploy_with_audit()
    task = alice.start_task("musing", then="ask")
    on_step(1, lambda: let_another_worker_begin(deployment, alice, task))
    deployment.run_worker(deployment.invocations.popleft())
    assert rounds(records) == []
    deployment.clock.advance(LEASE_SECONDS)
    alice.get(task)
    deployment.run_workers()
    assert rounds(records) == [(1, {"ok": "Ok?"}, {})]


def test_a_question_cancelled_before_it_is_sent_is_not_asked() -> None:
    deployment, alice, records = deploy_with_audit()
    task = alice.start_task("musing", then="ask")
    on_step(1, lambda: alice.cancel(task))
    deployment.run_workers()
    assert rounds(records) == [(1, {}, {})]


def test_a_question_cancelled_during_the_audit_is_withdrawn() -> None:
    records: list[AuditRecord] = []
    task = ""

    def audit(record: AuditRecord) -> None:
        records.append(record)
        if record.asked:
            alice.cancel(task)

    deployment = Deployment(*JOBS, audit=audit)
    alice = Client(deployment)
    task = alice.start_task("musing", then="ask")
    deployment.run_workers()
    assert alice.get(task)["status"] == "cancelled"
    assert rounds(records) == [(1, {"ok": "Ok?"}, {}), (1, {}, {})]  # a second record of the round, without a question


def stored_task(deployment: Deployment) -> dict[str, Any]:
    """Return the item of the only task as the table has it, with its version."""
    (item,) = (item for key, item in deployment.table.items.items() if "/task/" in key)
    return dict(item)


# ---- Calling a worker


class Lambda:
    """Lambda's Invoke API, as far as an invocation of a worker needs it."""

    def __init__(self, error: Exception | None = None) -> None:
        self.invoked: list[dict[str, Any]] = []
        self._error = error

    def invoke(self, **request: Any) -> dict[str, Any]:  # noqa: ANN401 - boto3's
        self.invoked.append(request)
        if self._error:
            raise self._error
        return {"StatusCode": 202, "Payload": io.BytesIO()}


def use_client(client: Lambda, monkeypatch: pytest.MonkeyPatch) -> Lambda:
    """Let each `WorkerInvoker` of the test call a client."""
    monkeypatch.setattr("mcp_functions.tasks.task_store.lambda_client", lambda: client)
    return client


def test_a_worker_is_called_asynchronously_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    client = use_client(Lambda(), monkeypatch)
    WorkerInvoker("local_work-worker")("work.1", None)
    assert client.invoked == [
        {
            "FunctionName": "local_work-worker",
            "InvocationType": "Event",
            "Payload": b'{"mcpTask": {"id": "work.1", "owner": null}}',
        }
    ]


@pytest.mark.parametrize("code", ["AccessDeniedException", "ResourceNotFoundException", "KMSAccessDeniedException"])
def test_a_task_whose_worker_may_never_be_invoked_fails_at_once_and_is_counted(
    code: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refused = ClientError({"Error": {"Code": code, "Message": "secret"}}, "Invoke")
    use_client(Lambda(refused), monkeypatch)
    with deployed():
        talk = Conversation(serve(required), capabilities=WITH_TASKS).call()
        line = vars(caplog.records[-1])
        polled = talk.poll()
    assert (line["outcome"], line["reason"], line["misconfigured"]) == ("failed", f"invoke_{code}", True)
    assert filters.count_metrics([{"outcome": line["outcome"], "misconfigured": True}])["Misconfigured"] == 1
    assert polled.body["result"]["status"] == "failed"
    assert polled.body["result"]["error"] == {"code": -32603, "message": "No worker continues the task"}


@pytest.mark.parametrize("qualifier", ["", ":live"])
def test_a_worker_is_called_by_the_qualifier_of_its_function(qualifier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    client = use_client(Lambda(), monkeypatch)
    with deployed(MCP_QUALIFIER=qualifier):
        talk = Conversation(serve(required), capabilities=WITH_TASKS).call()
    assert talk.task_id
    assert [request["FunctionName"] for request in client.invoked] == [f"local_required-worker{qualifier}"]


def test_a_worker_that_was_called_by_an_alias_runs() -> None:
    with deployed(MCP_QUALIFIER=":live"):
        assert Conversation(serve(required), capabilities=WITH_TASKS).call().poll().text == "WORK"


def test_a_worker_that_cannot_be_called_is_logged_and_its_task_is_stored(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    throttled = ClientError({"Error": {"Code": "TooManyRequestsException", "Message": "secret"}}, "Invoke")
    use_client(Lambda(throttled), monkeypatch)
    WorkerInvoker("local_work-worker")("work.1", None)
    assert caplog.messages == ["no worker: invoke_TooManyRequestsException"]


@pytest.mark.parametrize(
    ("code", "counted"), [("TooManyRequestsException", {"Busy": 1}), ("ServiceException", {"Failed": 1, "Outages": 1})]
)
def test_a_worker_that_lambda_could_not_call_is_counted_although_the_request_succeeds(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, code: str, counted: dict[str, float]
) -> None:
    status = {"ResponseMetadata": {"HTTPStatusCode": 500}} if code == "ServiceException" else {}
    error: Any = {"Error": {"Code": code, "Message": "secret"}, **status}
    use_client(Lambda(ClientError(error, "Invoke")), monkeypatch)
    WorkerInvoker("local_work-worker")("work.1", None)
    assert filters.count_metrics(vars(record) for record in caplog.records) == counted
