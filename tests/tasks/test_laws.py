"""Properties of tasks that hold whatever action to workers, worker invocations, the table and other clients.

No acknowledged answer is lost. No recorded step runs again. A worker that lost its lease writes nothing more.
A finished task never changes. No client sees another's task. Every other task ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mcp_functions.http.gateway import WorkFailed
from mcp_functions.protocol.errors import UnknownTask
from tests.support import wire
from tests.tasks.deployment import Client, Deployment, result_text
from tests.tasks.jobs import FINISHED_STEPS, STEP_HOOKS, saga

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.tasks import Task
    from mcp_functions.testing.dynamodb import Fault

USERS = ("alice", "bob")
NO_PROGRESS_MESSAGE = "The task was begun again and again, and never came further"


class Killed(KeyboardInterrupt):
    """The process of a worker has ended."""


@dataclass
class ClientTask:
    """A task as its client knows it."""

    id: str
    client: Client
    tag: str
    owner: str | None
    answers: dict[str, str] = field(default_factory=dict)  # question -> the first answer that fits
    recorded: set[str] = field(default_factory=set)  # steps that were ever written down
    cancelled: bool = False
    ended: Task | None = None


class TaskMachine(RuleBasedStateMachine):
    """Two users, their tasks, and failures of workers, invocations and the table."""

    def __init__(self) -> None:
        super().__init__()
        FINISHED_STEPS.clear()
        STEP_HOOKS.clear()
        self.deployment = Deployment(saga)
        self.clients = {name: Client(self.deployment, name) for name in USERS}
        self.known: list[ClientTask] = []
        self.lost: list[tuple[str, str | None]] = []
        STEP_HOOKS.append(self._assert_step_is_new)

    def _assert_step_is_new(self, done: list[str]) -> None:
        tag, key = done[-1].split()
        for known in self.known:
            if known.tag == tag and (task := self._item(known)):
                assert key not in {*known.recorded, *task.record.get("steps", {})}, f"{key} ran again"
                assert not task.ended, f"{key} ran in a task that had ended"

    def _item(self, known: ClientTask) -> Task | None:
        weather, self.deployment.table.weather = self.deployment.table.weather, lambda _operation: None
        try:
            return self.deployment.tasks.store.get(known.id, known.owner)
        except UnknownTask:
            return None
        finally:
            self.deployment.table.weather = weather

    # ---- Actions of clients

    @rule(name=st.sampled_from(USERS))
    def call(self, name: str) -> None:
        if len(self.known) < 4:
            tag = f"t{len(self.known)}"
            task_id = self.clients[name].start_task("saga", tag=tag)
            self.known.append(ClientTask(task_id, self.clients[name], tag, self.deployment.invocations[-1][1]))

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def poll(self, data: st.DataObject) -> None:
        self._get(self._draw_task(data))

    @precondition(lambda self: self.known)
    @rule(data=st.data(), fits=st.booleans(), fault=st.sampled_from([None, "lost", "unanswered", "throttled"]))
    def answer(self, data: st.DataObject, fits: bool, fault: Fault) -> None:  # noqa: FBT001 - drawn
        known = self._draw_task(data)
        asked = self._get(known).get("inputRequests", {})
        if not asked:
            return
        key = data.draw(st.sampled_from(sorted(asked)))
        name = data.draw(st.sampled_from(["Ann", "Bob", "Eve"]))
        content: dict[str, Any] = {"name": name if fits else 7}
        params = {"taskId": known.id, "inputResponses": {key: {"action": "accept", "content": content}}}
        self._fail_once("PutItem", fault)
        known.client.send("tasks/update", params)
        self.deployment.table.weather = lambda _operation: None
        task = self._item(known)
        taken = task is None or key not in task.requests
        assert taken or known.client.response["statusCode"] == 503, "acknowledged, and not taken"
        if taken and fits:
            known.answers.setdefault(key.partition("-")[0], name)

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def answer_a_finished_question(self, data: st.DataObject) -> None:
        known = self._draw_task(data)
        if (task := self._item(known)) and (over := sorted(set(task.used) - set(task.requests))):
            key = data.draw(st.sampled_from(over))
            known.client.accept(known.id, **{key: {"name": "Too late"}})
            assert self._item(known) == task

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        known = self._draw_task(data)
        if data.draw(st.integers(0, 3)) == 0 and self._item(known):
            known.client.cancel(known.id)
            known.cancelled = True

    @precondition(lambda self: self.known)
    @rule(data=st.data(), method=st.sampled_from(sorted(wire.OF_TASKS)))
    def act_as_another_user(self, data: st.DataObject, method: str) -> None:
        known = self._draw_task(data)
        other = self.clients[next(name for name in USERS if name != known.client.name)]
        before = self._item(known)
        accept = {"action": "accept", "content": {"name": "Mallory"}}
        responses = dict.fromkeys(["q1", "q2", "q3", "q1-2", "q2-2", "q3-2"], accept)
        error = other.error(method, {"taskId": known.id, "inputResponses": responses})
        assert error == {"code": -32602, "message": "Unknown task"}
        assert self._item(known) == before

    # ---- Workers

    @precondition(lambda self: self.deployment.invocations)
    @rule(fault=st.sampled_from([None, "lost", "unanswered", "throttled"]), seconds=st.sampled_from([1, 60, 900]))
    def work(self, fault: Fault, seconds: int) -> None:
        self._fail_once("PutItem", fault)
        self._run_next_worker(seconds)

    @precondition(lambda self: self.deployment.invocations)
    @rule(at=st.integers(0, 6), when=st.sampled_from(["before", "after"]))
    def work_and_be_killed(self, at: int, when: Literal["before", "after"]) -> None:
        writes = iter(range(99))

        def weather(operation: str) -> Fault:
            if operation == "PutItem" and next(writes) == at:
                self.deployment.table.weather = lambda _operation: None
                if when == "before":
                    raise Killed
                return self._kill_after()
            return None

        self.deployment.table.weather = weather
        self._run_next_worker()

    @precondition(lambda self: self.deployment.invocations)
    @rule()
    def work_and_be_killed_in_a_step(self) -> None:
        self._during_the_next_step(self._die)
        self._run_next_worker()

    @precondition(lambda self: self.deployment.invocations)
    @rule(rounds=st.integers(0, 2), last=st.sampled_from(["lives", "dies", "never comes"]))
    def pause_past_the_lease_while_another_worker_continues(self, rounds: int, last: str) -> None:
        left: list[dict[str, Any]] = []

        def sleep() -> None:
            self._continue_with_other_workers(rounds, last)
            left.append(dict(self.deployment.table.items))

        self._during_the_next_step(sleep)
        self._run_next_worker()
        assert left in ([], [self.deployment.table.items]), "written by a worker that was given up"

    @precondition(lambda self: self.deployment.invocations)
    @rule()
    def lose_a_worker_invocation(self) -> None:
        self.lost.append(self.deployment.invocations.popleft())

    @precondition(lambda self: self.lost)
    @rule()
    def repeat_a_lost_worker_invocation(self) -> None:
        self.deployment.invocations.append(self.lost[-1])

    @rule(seconds=st.sampled_from([1, 16, 31, 1000]))
    def advance_the_clock(self, seconds: int) -> None:
        self.deployment.clock.advance(seconds)

    # ---- Invariants

    @invariant()
    def a_finished_task_never_changes(self) -> None:
        for known in self.known:
            task = self._item(known)
            known.recorded |= set(task.record.get("steps", {})) if task else set()
            if known.ended:
                assert task == known.ended
            elif task and task.ended:
                known.ended = task

    def teardown(self) -> None:
        """Let clients answer and workers run until every task has ended."""
        STEP_HOOKS[:] = [self._assert_step_is_new]
        for known in self.known:
            for _ in range(60):
                polled = self._get(known)
                if polled["status"] in ("completed", "failed", "cancelled"):
                    break
                for key in polled.get("inputRequests", {}):
                    self._accept(known, key)
                while self.deployment.invocations:
                    self._run_next_worker()
                self.deployment.clock.advance(1000)
            self._assert_task_has_ended(known, polled)
        STEP_HOOKS.clear()

    def _assert_task_has_ended(self, known: ClientTask, polled: dict[str, Any]) -> None:
        match polled["status"]:
            case "completed":
                names = " ".join(known.answers[key] for key in ("q1", "q2", "q3"))
                assert result_text(polled["result"]) == f"{known.tag}: {names}"
            case "cancelled":
                assert known.cancelled
            case other:
                assert (other, polled["error"]["message"]) == ("failed", NO_PROGRESS_MESSAGE)

    # ---- Helpers

    def _continue_with_other_workers(self, rounds: int, last: str) -> None:
        self.deployment.clock.advance(40)
        for known in self.known:
            self._get(known)
        for _ in range(rounds):
            while self.deployment.invocations:
                self._run_next_worker()
            for known in self.known:
                for key in self._get(known).get("inputRequests", {}):
                    self._accept(known, key)
        if last == "dies":
            self._during_the_next_step(self._die)
        while self.deployment.invocations and last != "never comes":
            self._run_next_worker()

    def _accept(self, known: ClientTask, key: str) -> None:
        known.client.accept(known.id, **{key: {"name": "Zoe"}})
        known.answers.setdefault(key.partition("-")[0], "Zoe")

    def _draw_task(self, data: st.DataObject) -> ClientTask:
        return data.draw(st.sampled_from(self.known))

    def _get(self, known: ClientTask) -> dict[str, Any]:
        return known.client.get(known.id)

    def _run_next_worker(self, seconds: int = 900) -> None:
        try:
            self.deployment.run_worker(self.deployment.invocations.popleft(), seconds)
        except (Killed, WorkFailed):
            pass
        finally:
            self.deployment.table.weather = lambda _operation: None
            STEP_HOOKS[1:] = []
            self.a_finished_task_never_changes()

    def _fail_once(self, operation: str, fault: Fault) -> None:
        def weather(asked: str) -> Fault:
            if asked != operation:
                return None
            self.deployment.table.weather = lambda _operation: None
            return fault

        self.deployment.table.weather = weather

    def _kill_after(self) -> Fault:
        """Let the write happen, and the process end before it gets the response."""

        def kill_process(_operation: str) -> Fault:
            raise Killed

        self.deployment.table.weather = kill_process
        return "lost"

    def _die(self) -> None:
        raise Killed

    def _during_the_next_step(self, action: Callable[[], None]) -> None:
        def once(_done: list[str]) -> None:
            STEP_HOOKS[1:] = []
            action()

        STEP_HOOKS.append(once)


TestTasks = TaskMachine.TestCase
TestTasks.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
