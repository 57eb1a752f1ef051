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
from tests.support.payments import (
    ADD_NOTE,
    APPROVE,
    DISAPPROVE,
    INVALID_STATE_ERROR,
    INVOCATION_SECONDS,
    RETRY_LATER_ERROR,
    PaymentService,
    WorkerCrash,
    send,
)

if TYPE_CHECKING:
    from mcp_functions.testing.dynamodb import Fault
    from tests.support import wire
    from tests.support.payments import Moment

ANSWERS: dict[str, dict[str, Any]] = {"yes": APPROVE, "no": DISAPPROVE, "note": ADD_NOTE, "nothing": {}}
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
        self.service = PaymentService()
        self.patch.setattr(tables, "make_call", lambda: self.service.table)
        self.containers = [self.service.new_container(), self.service.new_container()]
        self.states: list[tuple[int, str, int]] = []  # flow, state, rounds that it counts
        self.results: dict[Sent, dict[str, Any]] = {}
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
        first = send(self.containers[0])
        assert first.questions == []  # the tool has done nothing yet
        self.states.append((flow, first.state, 1))

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
    def a_worker_will_crash(self, when: Moment) -> None:
        self.service.interruptions = {when: self.service.crash}

    @rule(faults=st.lists(st.sampled_from(FAULTS), max_size=5))
    def the_table_is_in_trouble(self, faults: list[Fault]) -> None:
        self.service.table_faults = list(faults)

    @rule(seconds=st.sampled_from([1, INVOCATION_SECONDS, INVOCATION_SECONDS + 2, 600]))
    def time_passes(self, seconds: int) -> None:
        self.service.now += seconds

    @rule()
    def the_table_forgets_what_has_ended(self) -> None:
        self.service.table.expire(self.service.now)

    @rule(which=st.integers(0, 1))
    def a_container_is_new(self, which: int) -> None:
        self.containers[which] = self.service.new_container()

    def _send(self, sent: Sent, container: int) -> bool:
        """Send a request; return whether the client got a result."""
        transfers_before, calls_before = set(self.service.transfers), self.service.transfer_calls
        try:
            reply = send(self.containers[container], sent.state, ANSWERS[sent.answer])
        except WorkerCrash:
            reply = None
        self.sent.append(sent)
        self.paid[sent.flow] |= set(self.service.transfers) - transfers_before
        assert len(self.paid[sent.flow]) <= 1, "a conversation was charged twice"
        if reply is None or reply.error in (RETRY_LATER_ERROR, INVALID_STATE_ERROR):
            return False
        self._check_result(sent, reply)
        if calls_before != self.service.transfer_calls:
            assert sent.answer == "yes"
        return True

    def _check_result(self, sent: Sent, reply: wire.Reply) -> None:
        result = {name: value for name, value in reply.result.items() if name != "_meta"}
        assert self.results.setdefault(sent, result) == result, "the same request got two results"
        rivals = {other.answer for other in self.results if (other.flow, other.round) == (sent.flow, sent.round)}
        assert rivals == {sent.answer}, "two requests ran as the same round"
        if "requestState" in result:
            known = (sent.flow, reply.state, sent.round)
            if known not in self.states:
                self.states.append(known)
        elif reply.text == "Nothing was paid.":
            assert not self.paid[sent.flow]
        else:
            assert len(self.paid[sent.flow]) == 1

    def _settle(self) -> None:
        """Once the faults end, some request of every conversation gets an answer: no correct client is stuck."""
        self.service.table_faults, self.service.interruptions = [], {}
        self.service.now += INVOCATION_SECONDS + 2
        for flow in {sent.flow for sent in self.sent}:
            latest = max(sent.round for sent in self.sent if sent.flow == flow)
            last = dict.fromkeys(sent for sent in self.sent if (sent.flow, sent.round) == (flow, latest))
            assert any(self._send(sent, 0) for sent in last), "no client gets a result"


SingleUseMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
TestSingleUse = SingleUseMachine.TestCase
