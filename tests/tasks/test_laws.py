"""Properties of tasks that hold in every order of calls, polls, answers, and failures of workers and of the table.

    No acknowledged answer is lost.
    No recorded step runs again.
    A worker that lost its task writes nothing more.
    A finished task never changes.
    No client sees another user's task.
    Every task ends.

Hypothesis calls the rules in random order. Each failing order is reported as a short program.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mcp_functions.http.gateway import WorkFailed
from mcp_functions.protocol.errors import UnknownTask
from tests.support import wire
from tests.tasks.deployment import Client, Deployment, result_text
from tests.tasks.jobs import STARTED_STEPS, STEP_HOOKS, Killed, kill_process, saga

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.tasks.task import Task
    from mcp_functions_harness.testing.dynamodb import Fault

USERS = ("alice", "bob")
NO_PROGRESS_MESSAGE = "The task was begun again and again, and never came further"


@dataclass
class ExpectedTask:
    """What a task must do, by what its client has done."""

    id: str
    client: Client
    tag: str  # an argument of the call, which begins the name of each of its steps
    owner: str | None
    answers: dict[str, str] = field(default_factory=dict)  # question -> the first valid answer
    recorded: set[str] = field(default_factory=set)  # steps that a worker has ever recorded
    cancelled: bool = False  # whether the client has cancelled it
    ended: Task | None = None  # the task as it ended


class TaskMachine(RuleBasedStateMachine):
    """Two users, their tasks, and failures of workers, invocations and the table."""

    def __init__(self) -> None:
        super().__init__()
        STARTED_STEPS.clear()
        STEP_HOOKS.clear()
        self.deployment = Deployment(saga)
        self.clients = {name: Client(self.deployment, name) for name in USERS}
        self.tasks: list[ExpectedTask] = []
        self.lost_invocations: list[tuple[str, str | None]] = []
        STEP_HOOKS.append(self._assert_step_is_new)

    def _assert_step_is_new(self, steps: list[str]) -> None:
        tag, step = steps[-1].split()
        for expected in self.tasks:
            task = self._stored(expected)
            if expected.tag == tag and task:
                assert step not in expected.recorded, f"{step} ran again"
                assert step not in task.record.get("steps", {}), f"{step} ran again"
                assert not task.ended, f"{step} ran in a task that had ended"

    def _stored(self, expected: ExpectedTask) -> Task | None:
        """Return a task as the table has it, without the table's faults; None if it has expired."""
        choose_fault = self.deployment.table.weather
        self.deployment.repair_table()
        try:
            return self.deployment.store.get(expected.id, expected.owner)
        except UnknownTask:
            return None
        finally:
            self.deployment.before_table_operation(choose_fault)

    # ---- Actions of clients

    @rule(name=st.sampled_from(USERS))
    def call(self, name: str) -> None:
        if len(self.tasks) == 4:
            return
        tag = f"t{len(self.tasks)}"
        task_id = self.clients[name].start_task("saga", tag=tag)
        _task_id, owner = self.deployment.invocations[-1]
        self.tasks.append(ExpectedTask(task_id, self.clients[name], tag, owner))

    @precondition(lambda self: self.tasks)
    @rule(data=st.data())
    def poll(self, data: st.DataObject) -> None:
        self._get(self._draw_task(data))

    @precondition(lambda self: self.tasks)
    @rule(data=st.data(), fits=st.booleans(), fault=st.sampled_from([None, "lost", "unanswered", "throttled"]))
    def answer(self, data: st.DataObject, fits: bool, fault: Fault) -> None:  # noqa: FBT001 - drawn
        expected = self._draw_task(data)
        asked = self._get(expected).get("inputRequests", {})
        if not asked:
            return
        key = data.draw(st.sampled_from(sorted(asked)))
        name = data.draw(st.sampled_from(["Ann", "Bob", "Eve"]))
        content: dict[str, Any] = {"name": name if fits else 7}
        params = {"taskId": expected.id, "inputResponses": {key: {"action": "accept", "content": content}}}
        self._fail_next_write(fault)
        expected.client.send("tasks/update", params)
        self.deployment.repair_table()
        task = self._stored(expected)
        is_answered = task is None or key not in task.requests
        if not is_answered:
            assert expected.client.response["statusCode"] == 503, "an acknowledged answer was lost"
        if is_answered and fits:
            expected.answers.setdefault(_question_of(key), name)

    @precondition(lambda self: self.tasks)
    @rule(data=st.data())
    def answer_a_finished_question(self, data: st.DataObject) -> None:
        expected = self._draw_task(data)
        task = self._stored(expected)
        finished = sorted(set(task.used) - set(task.requests)) if task else []
        if finished:
            key = data.draw(st.sampled_from(finished))
            expected.client.accept(expected.id, **{key: {"name": "Too late"}})
            assert self._stored(expected) == task

    @precondition(lambda self: self.tasks)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        expected = self._draw_task(data)
        is_drawn = data.draw(st.integers(0, 3)) == 0  # rarely, so that most tasks go on
        if is_drawn and self._stored(expected):
            expected.client.cancel(expected.id)
            expected.cancelled = True

    @precondition(lambda self: self.tasks)
    @rule(data=st.data(), method=st.sampled_from(sorted(wire.TASK_METHODS)))
    def act_as_another_user(self, data: st.DataObject, method: str) -> None:
        expected = self._draw_task(data)
        other = self.clients[next(name for name in USERS if name != expected.client.name)]
        before = self._stored(expected)
        accept = {"action": "accept", "content": {"name": "Mallory"}}
        responses = dict.fromkeys(["q1", "q2", "q3", "q1-2", "q2-2", "q3-2"], accept)
        error = other.error(method, {"taskId": expected.id, "inputResponses": responses})
        assert error == {"code": -32602, "message": "Unknown task"}
        assert self._stored(expected) == before

    # ---- Workers

    @precondition(lambda self: self.deployment.invocations)
    @rule(fault=st.sampled_from([None, "lost", "unanswered", "throttled"]), seconds=st.sampled_from([1, 60, 900]))
    def work(self, fault: Fault, seconds: int) -> None:
        self._fail_next_write(fault)
        self._run_next_worker(seconds)

    @precondition(lambda self: self.deployment.invocations)
    @rule(at=st.integers(0, 6), when=st.sampled_from(["before", "after"]))
    def work_and_be_killed_at_a_write(self, at: int, when: Literal["before", "after"]) -> None:
        writes = count()

        def kill_at_write(operation: str) -> Fault:
            if operation != "PutItem" or next(writes) != at:
                return None
            if when == "before":
                kill_process()
            # The write happens, but its response is lost. So the worker reads what is stored, and dies there.
            self.deployment.before_table_operation(kill_process)
            return "lost"

        self.deployment.before_table_operation(kill_at_write)
        self._run_next_worker()

    @precondition(lambda self: self.deployment.invocations)
    @rule()
    def work_and_be_killed_in_a_step(self) -> None:
        self._during_the_next_step(kill_process)
        self._run_next_worker()

    @precondition(lambda self: self.deployment.invocations)
    @rule(rounds=st.integers(0, 2), last=st.sampled_from(["lives", "dies", "never comes"]))
    def pause_past_the_lease_while_another_worker_continues(self, rounds: int, last: str) -> None:
        items_when_it_wakes: dict[str, Any] = {}

        def sleep() -> None:
            self._continue_with_other_workers(rounds, last)
            items_when_it_wakes.update(self.deployment.table.items)

        self._during_the_next_step(sleep)
        self._run_next_worker()
        if items_when_it_wakes:  # there was a next step
            assert self.deployment.table.items == items_when_it_wakes, "a worker that lost its task has written it"

    @precondition(lambda self: self.deployment.invocations)
    @rule()
    def lose_a_worker_invocation(self) -> None:
        self.lost_invocations.append(self.deployment.invocations.popleft())

    @precondition(lambda self: self.lost_invocations)
    @rule()
    def repeat_a_lost_worker_invocation(self) -> None:
        self.deployment.invocations.append(self.lost_invocations[-1])

    @rule(seconds=st.sampled_from([1, 16, 31, 1000]))
    def advance_the_clock(self, seconds: int) -> None:
        self.deployment.clock.advance(seconds)

    # ---- Invariants

    @invariant()
    def a_finished_task_never_changes(self) -> None:
        for expected in self.tasks:
            task = self._stored(expected)
            if expected.ended:
                assert task == expected.ended
            elif task:
                expected.recorded |= set(task.record.get("steps", {}))
                expected.ended = task if task.ended else None

    def teardown(self) -> None:
        """Let clients answer and workers run without failures. Then every task must end."""
        STEP_HOOKS[:] = [self._assert_step_is_new]
        for expected in self.tasks:
            for _ in range(60):
                polled = self._get(expected)
                if polled["status"] in ("completed", "failed", "cancelled"):
                    break
                for key in polled.get("inputRequests", {}):
                    self._accept(expected, key)
                while self.deployment.invocations:
                    self._run_next_worker()
                self.deployment.clock.advance(1000)
            self._assert_task_has_ended(expected, polled)
        STEP_HOOKS.clear()

    def _assert_task_has_ended(self, expected: ExpectedTask, polled: dict[str, Any]) -> None:
        if polled["status"] == "completed":
            names = " ".join(expected.answers[question] for question in ("q1", "q2", "q3"))
            assert result_text(polled["result"]) == f"{expected.tag}: {names}"
        elif polled["status"] == "cancelled":
            assert expected.cancelled
        else:
            assert polled["status"] == "failed"
            assert polled["error"]["message"] == NO_PROGRESS_MESSAGE  # its workers died too often

    # ---- Helpers

    def _continue_with_other_workers(self, rounds: int, last: str) -> None:
        """Let the lease end, and run other workers for some rounds, and then a `last` one."""
        self.deployment.clock.advance(40)
        for expected in self.tasks:
            self._get(expected)
        for _ in range(rounds):
            while self.deployment.invocations:
                self._run_next_worker()
            for expected in self.tasks:
                for key in self._get(expected).get("inputRequests", {}):
                    self._accept(expected, key)
        if last == "dies":
            self._during_the_next_step(kill_process)
        while self.deployment.invocations and last != "never comes":
            self._run_next_worker()

    def _accept(self, expected: ExpectedTask, key: str) -> None:
        expected.client.accept(expected.id, **{key: {"name": "Zoe"}})
        expected.answers.setdefault(_question_of(key), "Zoe")

    def _draw_task(self, data: st.DataObject) -> ExpectedTask:
        return data.draw(st.sampled_from(self.tasks))

    def _get(self, expected: ExpectedTask) -> dict[str, Any]:
        return expected.client.get(expected.id)

    def _run_next_worker(self, seconds: int = 900) -> None:
        try:
            self.deployment.run_worker(self.deployment.invocations.popleft(), seconds)
        except (Killed, WorkFailed):
            pass
        finally:
            self.deployment.repair_table()
            STEP_HOOKS[1:] = []  # the first one is _assert_step_is_new
            self.a_finished_task_never_changes()

    def _fail_next_write(self, fault: Fault) -> None:
        def fail_once(operation: str) -> Fault:
            if operation != "PutItem":
                return None
            self.deployment.repair_table()
            return fault

        self.deployment.before_table_operation(fail_once)

    def _during_the_next_step(self, action: Callable[[], None]) -> None:
        def once(_steps: list[str]) -> None:
            STEP_HOOKS[1:] = []
            action()

        STEP_HOOKS.append(once)


def _question_of(key: str) -> str:
    """Return the question of a key: `q1-2` asks q1 for the second time."""
    return key.partition("-")[0]


TestTasks = TaskMachine.TestCase
TestTasks.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
