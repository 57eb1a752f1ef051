"""Checks with valid states in the wrong place: of another call, another person, another time; and one state twice.

A server that completes a call with such a state does not bind its states, so an answer to one call counts for another.
The docstring of a check is the sentence that it tests.
"""

import json
from collections.abc import Iterator, Sequence

from mcp_functions_harness.client.http import CALLER, OTHER
from tests.attack.findings import Basis, Proof, Severity, check
from tests.attack.scan import Scan, SkipCheck, Target

MRTR = "basic/patterns/mrtr, Server Requirements"


@check(Severity.INFORMATION, Basis.OPINION, MRTR)
def state_replayed(scan: Scan) -> Iterator[Proof]:
    """Send the last request of a call a second time.

    no seal makes a state single-use; only a server that records used states can (mrtr: "Servers for which a given
    requestState must be consumed at most once … MUST enforce that invariant server-side").
    """
    last = scan.hold_conversation(scan.require_victim_with_state()).rounds[-1]
    if last.response.done and scan.send(last.request).response.done:
        yield Proof(last, "the last round was sent twice, byte for byte, and completed twice")


@check(Severity.INFORMATION, Basis.OPINION, MRTR)
def state_rewound(scan: Scan) -> Iterator[Proof]:
    """Send an earlier state again after the call went on.

    no seal makes a state single-use; only a server that records used states can (mrtr: "Servers for which a given
    requestState must be consumed at most once … MUST enforce that invariant server-side").
    """
    victim = scan.require_victim_with_state()
    if victim.question_rounds == 1:
        raise SkipCheck(reason=f"{victim.name} asks only once")
    state, answers = scan.begin(victim)
    first = scan.call(victim, requestState=state, inputResponses=answers)
    if not scan.has_advanced(victim, first.response):
        return
    again = scan.call(victim, requestState=state, inputResponses=answers)
    if scan.has_advanced(victim, again.response):
        description = f"the state of round 1 was taken again after that of round 2 had been left: {again.response}"
        yield Proof(again, description)


@check(Severity.HOLE, Basis.SHOULD, MRTR)
def state_for_other_arguments(scan: Scan) -> Iterator[Proof]:
    """Send a state with a call that has other arguments.

    servers SHOULD include … an identifier for the originating request, e.g. the method name and a digest of its
    salient parameters, rejecting state presented on a request that does not match.
    """
    victim = scan.require_victim_needing_state()
    asks = False
    for other in scan.other_calls(victim):
        asks = True
        state, answers = scan.reach_last_round(victim)
        exchange = scan.call(other, requestState=state, inputResponses=answers)
        if exchange.response.done:
            arguments = json.dumps(other.params.get("arguments") or other.params)
            yield Proof(exchange, f"a state of {victim} completed a call with {arguments}: {exchange.response}")
    if not asks:
        raise SkipCheck(reason=f"no other arguments were found with which {victim.name} asks")


@check(Severity.HOLE, Basis.SHOULD, MRTR)
def state_for_another_target(scan: Scan) -> Iterator[Proof]:
    """Send a state with a call of another tool, prompt or resource.

    servers SHOULD include … an identifier for the originating request, e.g. the method name and a digest of its
    salient parameters, rejecting state presented on a request that does not match.
    """
    victim = scan.require_victim_needing_state()
    return _completed_by_state_of(scan, victim, [other for other in scan.targets[1:] if other.method == victim.method])


@check(Severity.HOLE, Basis.SHOULD, MRTR)
def state_for_another_method(scan: Scan) -> Iterator[Proof]:
    """Send a state with a call of another method.

    servers SHOULD include … an identifier for the originating request, e.g. the method name and a digest of its
    salient parameters, rejecting state presented on a request that does not match.
    """
    victim = scan.require_victim_needing_state()
    return _completed_by_state_of(scan, victim, [other for other in scan.targets if other.method != victim.method])


@check(Severity.HOLE, Basis.SHOULD, MRTR)
def state_of_another_person(scan: Scan) -> Iterator[Proof]:
    """Send a state as another person.

    servers SHOULD include … the authenticated principal, rejecting state presented by a different principal.
    """
    victim = scan.require_victim_needing_state()
    if not scan.credentials[OTHER]:
        raise SkipCheck(reason="it takes a second person: give their credentials with --other-header")
    for owner, thief in ((CALLER, OTHER), (OTHER, CALLER)):
        state, answers = scan.reach_last_round(victim, person=owner)
        exchange = scan.call(victim, person=thief, requestState=state, inputResponses=answers)
        if exchange.response.done:
            yield Proof(exchange, f"a state of one person completed a call of another: {exchange.response}")


@check(Severity.HOLE, Basis.SHOULD, MRTR)
def state_expired(scan: Scan) -> Iterator[Proof]:
    """Send a state after its time.

    servers SHOULD include … a short expiry (TTL), rejecting state presented after it lapses.
    """
    victim = scan.require_victim_needing_state()
    if scan.lifetime is None:
        raise SkipCheck(reason="nobody said how long a state lives: --lifetime SECONDS")
    seconds = scan.lifetime + 1  # the state must have expired for certain
    if seconds > scan.seconds_left:
        raise SkipCheck(reason=f"waiting for {scan.lifetime:g} s is longer than this run may last: --seconds")
    state, answers = scan.reach_last_round(victim)
    scan.wait(seconds)
    exchange = scan.call(victim, requestState=state, inputResponses=answers)
    if exchange.response.done:
        yield Proof(exchange, f"a state was taken {seconds:g} s after it was left: {exchange.response}")


def _completed_by_state_of(scan: Scan, victim: Target, others: Sequence[Target]) -> Iterator[Proof]:
    """Send states of the victim in calls of other targets that need a state."""
    if not others:
        raise SkipCheck(reason="nothing else was found that asks")
    for other in filter(scan.needs_state, others):
        state, answers = scan.reach_last_round(victim)
        exchange = scan.call(other, requestState=state, inputResponses=other.answers | answers)
        if exchange.response.done:
            yield Proof(exchange, f"a state of {victim} completed {other}: {exchange.response}")
