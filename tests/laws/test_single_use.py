"""Single use: a payment happens at most once and every holder of the state learns the same outcome.

A state machine plays several clients with the same states: they repeat, race, go back and answer differently. Workers
die before or after the payment, leases expire, and the table throttles, loses writes and loses responses.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from mcp_functions import store as tables
from tests.support.single_use import LATER, NO, NOTE, REFUSED, SECONDS, YES, World, said

if TYPE_CHECKING:
    from mcp_functions.testing.dynamodb import Fault

ANSWERS: dict[str, dict[str, Any]] = {"yes": YES, "no": NO, "note": NOTE, "nothing": {}}
FAULTS: list[Fault] = [None, None, "throttled", "lost", "unanswered"]


class Sent(NamedTuple):
    """A request: which conversation, which of its states by number of rounds, how it was answered."""

    flow: int
    state: str
    round: int
    answer: str


class SingleUseMachine(RuleBasedStateMachine):
    """Clients, workers and a table, and what must hold of the bank's books."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.world = World()
        self.patch.setattr(tables, "make_call", lambda: self.world.table)
        self.containers = [self.world.container(), self.world.container()]
        self.states: list[tuple[int, str, int]] = []  # flow, state, rounds that it counts
        self.heard: dict[Sent, Any] = {}
        self.sent: list[Sent] = []
        self.paid: dict[int, set[str]] = defaultdict(set)  # flow -> keys of its transfers

    def teardown(self) -> None:
        try:
            self._settle()
        finally:
            self.patch.undo()

    @initialize()
    def begin(self) -> None:
        self.another()

    @precondition(lambda self: len({flow for flow, _, _ in self.states}) < 3)
    @rule()
    def another(self) -> None:
        flow = len({flow for flow, _, _ in self.states})
        body = self.world.ask(self.containers[0])
        assert said(body) == []  # it has done nothing yet
        assert body
        self.states.append((flow, body["result"]["requestState"], 1))

    @rule(which=st.integers(0, 50), answer=st.sampled_from(sorted(ANSWERS)), container=st.integers(0, 1))
    def answer(self, which: int, answer: str, container: int) -> None:
        """Present a state, the newest as a rule, or any older one."""
        flow, state, rounds = self.states[-1 - which % len(self.states)]
        self._send(Sent(flow, state, rounds + 1, answer), container)

    @precondition(lambda self: bool(self.sent))
    @rule(which=st.integers(0, 50), container=st.integers(0, 1))
    def repeat(self, which: int, container: int) -> None:
        self._send(self.sent[-1 - which % len(self.sent)], container)

    @rule(when=st.sampled_from(["before", "after"]))
    def a_worker_will_die(self, when: str) -> None:
        self.world.kill = when

    @rule(faults=st.lists(st.sampled_from(FAULTS), max_size=5))
    def the_table_is_in_trouble(self, faults: list[Fault]) -> None:
        self.world.faults = list(faults)

    @rule(seconds=st.sampled_from([1, SECONDS, SECONDS + 2, 600]))
    def time_passes(self, seconds: int) -> None:
        self.world.now += seconds

    @rule()
    def the_table_forgets_what_has_ended(self) -> None:
        self.world.table.expire(self.world.now)

    @rule(which=st.integers(0, 1))
    def a_container_is_new(self, which: int) -> None:
        self.containers[which] = self.world.container()

    def _send(self, sent: Sent, container: int) -> Any:  # noqa: ANN401 - whatever it says
        before, calls = set(self.world.transfers), self.world.calls
        body = self.world.ask(self.containers[container], sent.state, ANSWERS[sent.answer])
        self.sent.append(sent)
        self.paid[sent.flow] |= set(self.world.transfers) - before
        assert len(self.paid[sent.flow]) <= 1, "a conversation was charged twice"
        heard = said(body)
        if body is None or heard in (LATER, REFUSED):
            return heard
        self._hears(sent, body)
        if calls != self.world.calls:
            assert sent.answer == "yes"
        return heard

    def _hears(self, sent: Sent, body: dict[str, Any]) -> None:
        result = {name: value for name, value in body["result"].items() if name != "_meta"}
        assert self.heard.setdefault(sent, result) == result, "the same request was told two things"
        rivals = {other.answer for other in self.heard if (other.flow, other.round) == (sent.flow, sent.round)}
        assert rivals == {sent.answer}, "two requests ran as the same round"
        match said(body):
            case "Nothing was paid.":
                assert not self.paid[sent.flow]
            case str():
                assert len(self.paid[sent.flow]) == 1
        if "requestState" in result and (known := (sent.flow, result["requestState"], sent.round)) not in self.states:
            self.states.append(known)

    def _settle(self) -> None:
        """Once the faults end, some request of every conversation gets an answer: no correct client is stuck."""
        self.world.faults, self.world.kill = [], None
        self.world.now += SECONDS + 2
        for flow in {sent.flow for sent in self.sent}:
            latest = max(sent.round for sent in self.sent if sent.flow == flow)
            last = dict.fromkeys(sent for sent in self.sent if (sent.flow, sent.round) == (flow, latest))
            assert any(self._send(sent, 0) not in (LATER, REFUSED) for sent in last), "nobody is answered"


SingleUseMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
TestSingleUse = SingleUseMachine.TestCase
