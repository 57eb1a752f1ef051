"""Good states in the wrong place: of another call, another person, another time; and the same one once more."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mcp_functions.attack.findings import Basis, Check, NotTried, Proof, Severity
from mcp_functions.attack.sending import CALLER, OTHER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.attack.hunt import Hunt, Target

MRTR = "basic/patterns/mrtr, Server Requirements"
REQUEST = (
    "servers SHOULD include … an identifier for the originating request, e.g. the method name and a digest of its "
    "salient parameters, rejecting state presented on a request that does not match."
)
PRINCIPAL = "servers SHOULD include … the authenticated principal, rejecting state presented by a different principal."
EXPIRY = "servers SHOULD include … a short expiry (TTL), rejecting state presented after it lapses."
ONCE = (
    'no seal makes a state single-use; only a server that records used states can (mrtr: "Servers for which a given '
    'requestState must be consumed at most once … MUST enforce that invariant server-side").'
)
WAITING = 1.0  # seconds beyond the lifetime


def _other_arguments(hunt: Hunt) -> Iterator[Proof]:
    victim = hunt.needed
    tried = 0
    for other in hunt.elsewhere(victim):
        tried += 1
        state, responses = hunt.fresh(victim)
        crossed = hunt.call(other, requestState=state, inputResponses=responses)
        if crossed.answer.done:
            yield Proof(crossed, f"a state of {victim} completed a call with {_written(other)}: {crossed.answer}")
    if not tried:
        text = f"no other arguments were found with which {victim.name} asks"
        raise NotTried(text)


def _written(target: Target) -> str:
    return json.dumps(target.params.get("arguments") or target.params)


def _other_target(hunt: Hunt) -> Iterator[Proof]:
    yield from _crossed(hunt, [target for target in hunt.targets[1:] if target.method == hunt.victim.method])


def _other_method(hunt: Hunt) -> Iterator[Proof]:
    yield from _crossed(hunt, [target for target in hunt.targets[1:] if target.method != hunt.victim.method])


def _crossed(hunt: Hunt, targets: list[Target]) -> Iterator[Proof]:
    victim = hunt.needed
    if not targets:
        text = "nothing else was found that asks"
        raise NotTried(text)
    for other in filter(hunt.is_sure, targets):
        state, responses = hunt.fresh(victim)
        crossed = hunt.call(other, requestState=state, inputResponses=other.answers | responses)
        if crossed.answer.done:
            yield Proof(crossed, f"a state of {victim} completed {other}: {crossed.answer}")


def _other_principal(hunt: Hunt) -> Iterator[Proof]:
    victim = hunt.needed
    if not hunt.has_other:
        text = "it takes a second person: give their credentials with --other-header"
        raise NotTried(text)
    for owner, thief in ((CALLER, OTHER), (OTHER, CALLER)):
        state, responses = hunt.fresh(victim, who=owner)
        stolen = hunt.call(victim, who=thief, requestState=state, inputResponses=responses)
        if stolen.answer.done:
            yield Proof(stolen, f"a state of one person completed a call of another: {stolen.answer}")


def _expired(hunt: Hunt) -> Iterator[Proof]:
    victim = hunt.needed
    if hunt.lifetime is None:
        text = "nobody said how long a state lives: --lifetime SECONDS"
        raise NotTried(text)
    if hunt.lifetime + WAITING > hunt.line.seconds_left:
        text = f"waiting for {hunt.lifetime:g} s is longer than this run may last: --seconds"
        raise NotTried(text)
    state, responses = hunt.fresh(victim)
    hunt.wait(hunt.lifetime + WAITING)
    late = hunt.call(victim, requestState=state, inputResponses=responses)
    if late.answer.done:
        yield Proof(late, f"a state was taken {hunt.lifetime + WAITING:g} s after it was left: {late.answer}")


def _rewound(hunt: Hunt) -> Iterator[Proof]:
    victim = hunt.stateful
    if len([one for one in victim.rounds if one.answer.asked]) < 2:  # noqa: PLR2004 - two rounds of questions
        text = f"{victim.name} asks only once"
        raise NotTried(text)
    state, responses = hunt.begun(victim)
    second = hunt.call(victim, requestState=state, inputResponses=responses)
    if not hunt.went_on(victim, second.answer):
        return
    again = hunt.call(victim, requestState=state, inputResponses=responses)
    if hunt.went_on(victim, again.answer):
        yield Proof(again, f"the state of round 1 was taken again after that of round 2 had been left: {again.answer}")


def _replayed(hunt: Hunt) -> Iterator[Proof]:
    victim = hunt.stateful
    if not victim.rounds[-1].answer.done:
        text = f"{victim.name} was never completed"
        raise NotTried(text)
    once = hunt.walk(victim).rounds[-1]
    if once.answer.done and hunt.line.send(once.sent).answer.done:
        yield Proof(once, "the last round was sent twice, byte for byte, and completed twice")


CHECKS = (
    Check("state-replayed", Severity.INFORMATION, Basis.OPINION, MRTR, ONCE, _replayed),
    Check("state-rewound", Severity.INFORMATION, Basis.OPINION, MRTR, ONCE, _rewound),
    Check("state-for-other-arguments", Severity.HOLE, Basis.SHOULD, MRTR, REQUEST, _other_arguments),
    Check("state-for-another-target", Severity.HOLE, Basis.SHOULD, MRTR, REQUEST, _other_target),
    Check("state-for-another-method", Severity.HOLE, Basis.SHOULD, MRTR, REQUEST, _other_method),
    Check("state-of-another-person", Severity.HOLE, Basis.SHOULD, MRTR, PRINCIPAL, _other_principal),
    Check("state-expired", Severity.HOLE, Basis.SHOULD, MRTR, EXPIRY, _expired),
)
