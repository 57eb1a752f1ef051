"""Single use: a payment happens at most once, and every client with the same state gets the same result.

A state machine plays several clients with the same states: they repeat requests, go back, and answer differently.
Workers crash before or after the payment, leases expire, and the table throttles, loses writes and loses responses.
tests/support/payments.py has the tool and its four rounds.
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
    do_nothing,
    send,
)

if TYPE_CHECKING:
    from mcp_functions_harness.testing.dynamodb import Fault
    from tests.support import wire

ANSWERS: dict[str, dict[str, Any]] = {"approve": APPROVE, "disapprove": DISAPPROVE, "note": ADD_NOTE, "nothing": {}}
FAULTS: list[Fault] = [None, None, "throttled", "lost", "unanswered"]  # None: the table works
MAX_FLOWS = 3


class KnownState(NamedTuple):
    """A state that the clients hold."""

    flow: int  # the number of the payment
    state: str
    round: int  # the number of the round that returned it


class PaymentRequest(NamedTuple):
    """A request with a state, and with answers by their name in ANSWERS."""

    flow: int
    state: str
    round: int
    answers: str


class SingleUseMachine(RuleBasedStateMachine):
    """Hypothesis calls the rules in any order; each request checks what must hold of payments and results."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.service = PaymentService()
        self.patch.setattr(tables, "make_call", lambda: self.service.table)
        self.containers = [self.service.new_container(), self.service.new_container()]
        self.states: list[KnownState] = []
        self.requests: list[PaymentRequest] = []
        self.results: dict[PaymentRequest, dict[str, Any]] = {}
        self.transfers: dict[int, set[str]] = defaultdict(set)  # the idempotency keys of the transfers, by flow

    def teardown(self) -> None:
        try:
            self._check_every_flow_goes_on()
        finally:
            self.patch.undo()

    @initialize()
    def begin_first_payment(self) -> None:
        self.begin_payment()

    @precondition(lambda self: self._count_flows() < MAX_FLOWS)
    @rule()
    def begin_payment(self) -> None:
        first = send(self.containers[0])
        assert first.questions == []  # the tool has done nothing yet
        self.states.append(KnownState(self._count_flows(), first.state, round=1))

    @rule(age=st.integers(0, 50), answers=st.sampled_from(sorted(ANSWERS)), container=st.integers(0, 1))
    def answer(self, age: int, answers: str, container: int) -> None:
        """Send the newest state (age 0), or an older one."""
        flow, state, round_ = self.states[-1 - age % len(self.states)]
        self._send(PaymentRequest(flow, state, round_ + 1, answers), container)

    @precondition(lambda self: bool(self.requests))
    @rule(age=st.integers(0, 50), container=st.integers(0, 1))
    def repeat(self, age: int, container: int) -> None:
        self._send(self.requests[-1 - age % len(self.requests)], container)

    @rule()
    def let_a_worker_crash_before_the_transfer(self) -> None:
        self.service.before_transfer = self.service.crash

    @rule()
    def let_a_worker_crash_after_the_transfer(self) -> None:
        self.service.after_transfer = self.service.crash

    @rule(faults=st.lists(st.sampled_from(FAULTS), max_size=5))
    def let_the_table_fail(self, faults: list[Fault]) -> None:
        self.service.table_faults = list(faults)

    @rule(seconds=st.sampled_from([1, INVOCATION_SECONDS, INVOCATION_SECONDS + 2, 600]))
    def let_time_pass(self, seconds: int) -> None:
        self.service.now += seconds

    @rule()
    def let_items_of_the_table_expire(self) -> None:
        self.service.table.expire(self.service.now)

    @rule(container=st.integers(0, 1))
    def replace_a_container(self, container: int) -> None:
        self.containers[container] = self.service.new_container()

    def _count_flows(self) -> int:
        return len({known.flow for known in self.states})

    def _send(self, request: PaymentRequest, container: int) -> bool:
        """Send a request, check what it did, and return whether the client got a result."""
        keys_before = set(self.service.transfers)
        calls_before = self.service.transfer_calls
        try:
            reply = send(self.containers[container], request.state, ANSWERS[request.answers])
        except WorkerCrash:
            reply = None
        self.requests.append(request)
        self.transfers[request.flow] |= set(self.service.transfers) - keys_before
        assert len(self.transfers[request.flow]) <= 1, "a payment was made twice"
        if reply is None or reply.error in (RETRY_LATER_ERROR, INVALID_STATE_ERROR):
            return False
        if self.service.transfer_calls > calls_before:
            assert request.answers == "approve"
        self._check_result(request, reply)
        return True

    def _check_result(self, request: PaymentRequest, reply: wire.Reply) -> None:
        result = {name: value for name, value in reply.result.items() if name != "_meta"}
        assert self.results.setdefault(request, result) == result, "the same request got two results"
        for other in self.results:
            if (other.flow, other.round) == (request.flow, request.round):
                assert other.answers == request.answers, "two requests ran as the same round"
        if "requestState" in result:
            known = KnownState(request.flow, reply.state, request.round)
            if known not in self.states:
                self.states.append(known)
        elif reply.text == "Nothing was paid.":
            assert not self.transfers[request.flow]
        else:
            assert len(self.transfers[request.flow]) == 1

    def _check_every_flow_goes_on(self) -> None:
        """Check that after the faults some request of the latest round gets a result, in each flow."""
        self.service.table_faults = []
        self.service.before_transfer = do_nothing
        self.service.after_transfer = do_nothing
        self.service.now += INVOCATION_SECONDS + 2
        for flow in {request.flow for request in self.requests}:
            latest = max(request.round for request in self.requests if request.flow == flow)
            requests = [request for request in self.requests if (request.flow, request.round) == (flow, latest)]
            assert any(self._send(request, 0) for request in requests), "no client gets a result"


SingleUseMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
TestSingleUse = SingleUseMachine.TestCase
