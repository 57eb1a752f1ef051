"""Random sequences of events in a fleet of four containers: outages, denials, restarts, deploys and an attacker.

Hypothesis chooses the events; the clock and KMS are fakes. Whatever happens, in whatever order:

    1. A state is accepted only in its lifetime, by its generation of keys, and with its own request.
    2. A valid state is never refused as invalid, and an outage is reported as an outage.
    3. A container calls KMS no more often than the specification allows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from mcp_functions.protocol.errors import (
    InvalidRequestState,
    McpError,
    Misconfigured,
    TemporarilyUnavailable,
    ToolError,
)
from mcp_functions.protocol.messages import Principal
from mcp_functions.seal.binding import Binding, bind_request
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.keyring import Keyring
from mcp_functions.seal.kms import KmsKey
from mcp_functions.seal.request_state import RequestStates
from tests.support.strict_kms import SCOPE, START, Clock, Repeatable, StrictKms, kms_error

if TYPE_CHECKING:
    from mcp_functions.seal.claims import Claims

SIZE = 4  # containers in the fleet
LIFETIME, EPOCH = 600, 900  # seconds
NUMBERS = st.integers(0, SIZE - 1)  # which container a request reaches
REQUESTS = [
    bind_request("a/prod", "tools/call", {"name": name, "arguments": {"id": number}}, Principal("iss", sub, "c"))
    for name in ("one", "two")
    for number in (1, 2)
    for sub in ("alice", "bob")
]


@dataclass
class KmsRecorder:
    """A client of KMS that records what one container asks."""

    kms: StrictKms
    clock: Clock
    epochs_of_generated_keys: list[int] = field(default_factory=list)
    decrypt_calls: int = 0

    def generate_data_key(self, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
        answer = self.kms.generate_data_key(**arguments)
        self.epochs_of_generated_keys.append(int(self.clock() // EPOCH))
        return answer

    def decrypt(self, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
        self.decrypt_calls += 1
        return self.kms.decrypt(**arguments)


@dataclass
class Container:
    """One execution environment, from its cold start on."""

    recorder: KmsRecorder
    states: RequestStates
    deploy: int
    born: float


@dataclass(frozen=True)
class SealedState:
    """A state that the fleet left, and what the model knows of it."""

    token: str
    request: Binding
    expires: float
    generation: int
    round: int


class Fleet(RuleBasedStateMachine):
    """Four containers behind a random router."""

    states = Bundle("states")

    @initialize()
    def start(self) -> None:
        self.patched_random = mock.patch("os.urandom", Repeatable())
        self.patched_random.start()
        self.kms, self.clock = StrictKms(), Clock(START + 100)
        self.arns = [self.kms.create_key(), self.kms.create_key()]
        self.generation, self.outage, self.denied, self.ever_denied = 1, False, False, False
        self.kms.weather = lambda _operation: kms_error("ThrottlingException") if self.outage else None
        self.kms.policy = lambda _operation, _key, _context: not self.denied
        self.containers = [self.launch(0) for _ in range(SIZE)]

    def launch(self, deploy: int) -> Container:
        """Start a container as the given deploy of a key rotation configures it: [old], [old, new], [new, old]."""
        recorder = KmsRecorder(self.kms, self.clock)
        arns = [self.arns[:1], self.arns, self.arns[::-1]][deploy]
        scope = SCOPE._replace(generation=str(self.generation))
        keys = Keyring([KmsKey(arn, lambda: recorder) for arn in arns], scope, now=self.clock)
        envelope = Envelope(keys, max_age=LIFETIME)
        states = RequestStates(envelope, now=self.clock, lifetime_seconds=LIFETIME)
        return Container(recorder, states, deploy, self.clock())

    def teardown(self) -> None:
        self.patched_random.stop()

    @rule(seconds=st.sampled_from([0.5, 1, 10, 40, 120, 300, 599, 700, 900, 1799, 5000]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(target=states, number=NUMBERS, request=st.sampled_from(REQUESTS))
    def a_first_round(self, number: int, request: Binding) -> MultipleResults[SealedState]:
        return self.seal(self.containers[number], request, None)

    @rule(target=states, number=NUMBERS, sealed=states)
    def a_next_round(self, number: int, sealed: SealedState) -> MultipleResults[SealedState]:
        opened = self.open(self.containers[number], sealed)
        return self.seal(self.containers[number], sealed.request, opened) if opened else multiple()

    def seal(self, container: Container, request: Binding, previous: Claims | None) -> MultipleResults[SealedState]:
        now = self.clock()
        try:
            token = container.states.seal(request, previous, asked={}, record={"n": 1})
        except TemporarilyUnavailable:
            assert self.outage, "unavailable without an outage"
            return multiple()
        except Misconfigured:
            assert self.denied, "misconfigured though nothing is denied"
            return multiple()
        except ToolError:
            assert previous is not None
            assert previous.round == 16 or now * 1000 >= previous.flow_deadline - 1
            return multiple()
        deadline = previous.flow_deadline / 1000 if previous else now + 3600
        expires = min(now + LIFETIME, deadline)
        return multiple(SealedState(token, request, expires, self.generation, previous.round + 1 if previous else 1))

    @rule(number=NUMBERS, sealed=states)
    def a_state_comes_back(self, number: int, sealed: SealedState) -> None:
        self.open(self.containers[number], sealed)

    def open(self, container: Container, sealed: SealedState) -> Claims | None:
        # A time in a state is in whole milliseconds, so a valid state may end one or two earlier.
        is_valid = self.clock() < sealed.expires - 0.002 and sealed.generation == self.generation
        try:
            opened = container.states.open(sealed.token, sealed.request, caller="somebody")
        except InvalidRequestState as error:
            reason = error.reason
            retired = reason == "kek_retired" and self.denied  # denying a key that is not the first retires it
            assert retired or not is_valid, f"a valid state was refused: {reason}"
        except TemporarilyUnavailable as error:
            # Denials, and states of an earlier generation, fail to unwrap; so they empty the caller's budget.
            is_over_budget = error.reason == "unwrap_budget" and (self.generation > 1 or self.ever_denied)
            assert self.outage or is_over_budget, "unavailable without an outage"
        except Misconfigured:
            assert self.denied, "misconfigured though nothing is denied"
        else:
            assert self.clock() <= sealed.expires, "accepted after its end"
            assert sealed.generation == self.generation, "accepted from another generation"
            assert opened.round == sealed.round
            return opened
        return None

    @rule(number=NUMBERS, sealed=states, request=st.sampled_from(REQUESTS))
    def a_state_comes_with_another_request(self, number: int, sealed: SealedState, request: Binding) -> None:
        if request != sealed.request:
            with pytest.raises(McpError):
                self.containers[number].states.open(sealed.token, request, caller="somebody else")

    @rule(number=NUMBERS, sealed=states, place=st.integers(4, 600), letter=st.sampled_from("AQgw-_09"))
    def a_damaged_state_comes(self, number: int, sealed: SealedState, place: int, letter: str) -> None:
        if place < len(sealed.token) and sealed.token[place] != letter:
            damaged = sealed.token[:place] + letter + sealed.token[place + 1 :]
            # An attacker must not be able to alarm the operator, so Misconfigured needs a denial of KMS.
            errors = (InvalidRequestState, TemporarilyUnavailable)
            with pytest.raises((*errors, Misconfigured) if self.denied else errors):
                self.containers[number].states.open(damaged, sealed.request, caller="mallory")

    @rule(outage=st.booleans())
    def an_outage_begins_or_ends(self, *, outage: bool) -> None:
        self.outage = outage

    @rule(denied=st.booleans())
    def the_policy_changes(self, *, denied: bool) -> None:
        self.denied = denied
        self.ever_denied |= denied

    @rule(number=NUMBERS)
    def a_container_is_replaced(self, number: int) -> None:
        self.containers[number] = self.launch(self.containers[number].deploy)

    @rule(number=NUMBERS)
    def a_deploy_of_a_key_rotation_reaches_a_container(self, number: int) -> None:
        here = self.containers[number].deploy
        if here < 2 and here == min(container.deploy for container in self.containers):
            self.containers[number] = self.launch(here + 1)

    @precondition(lambda self: self.generation < 3)
    @rule()
    def the_generation_is_raised(self) -> None:
        self.generation += 1
        self.containers = [self.launch(container.deploy) for container in self.containers]

    @invariant()
    def no_container_generates_twice_in_an_epoch(self) -> None:
        for container in getattr(self, "containers", []):
            epochs = container.recorder.epochs_of_generated_keys
            assert len(set(epochs)) == len(epochs)

    @invariant()
    def no_container_asks_more_often_than_there_are_keys_and_budget(self) -> None:
        for container in getattr(self, "containers", []):
            seconds = self.clock() - container.born
            budget = 3 * (3 + seconds / 30)  # three callers: two users and mallory
            keys = sum(call.operation == "GenerateDataKey" and call.outcome == "ok" for call in self.kms.calls)
            charged = {"ok", "InvalidCiphertextException", "AccessDeniedException"}
            refused = sum(call.outcome not in charged for call in self.kms.calls)
            assert container.recorder.decrypt_calls <= keys + refused + budget

    @invariant()
    def kms_never_sees_a_question_without_a_key_or_with_another_scope(self) -> None:
        if getattr(self, "kms", None) and self.kms.calls:
            call = self.kms.calls[-1]
            assert call.key_id in self.arns
            assert call.context.keys() == {"purpose", "service", "stage", "generation", "born"}


Fleet.TestCase.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
TestFleet = Fleet.TestCase
