"""Answers that nobody asked for, answers that fit no question, and questions to a client that takes none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.attack import forms
from mcp_functions.attack.findings import Basis, Check, NotTried, Proof, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mcp_functions.attack.hunt import Hunt, Target
    from mcp_functions.attack.sending import Exchange

MRTR = "basic/patterns/mrtr"
COLD = (
    "an answer counts only for a question that was asked: a server that issues a requestState should not complete a "
    "call without one."
)
VALID = (
    "Servers SHOULD validate that the data provided by the client is a valid InputResponses object and that the "
    "information inside can be correctly parsed."
)
FITS = "Servers SHOULD validate received data matches the requested schema."
UNDECLARED = "Servers MUST NOT send an inputRequests that the client has not declared support for in its capabilities."
REFUSAL = (
    "the server MUST return a MissingRequiredClientCapabilityError (-32021) whose data.requiredCapabilities lists the "
    "missing capabilities. On HTTP, the response status MUST be 400 Bad Request."
)
MODES = "Servers MUST NOT send elicitation requests with modes that are not supported by the client."
MALFORMED: tuple[tuple[str, Any], ...] = (("a number", 7), ("a list", []), ("a text", "yes"))
ENTRIES: tuple[tuple[str, Any], ...] = (("null", None), ("a number", 7), ("a list", []), ("an empty object", {}))
MISSING_CAPABILITY, BAD_REQUEST = -32021, 400


def _cold(hunt: Hunt) -> Iterator[Proof]:
    victim = hunt.stateful
    if not victim.rounds[-1].answer.done:
        text = f"{victim.name} was never completed"
        raise NotTried(text)
    cold = hunt.call(victim, inputResponses=victim.answers)
    if hunt.went_on(victim, cold.answer):
        yield Proof(cold, f"answers without a state, to questions that nobody had asked: {cold.answer}")


def _ahead(hunt: Hunt) -> Iterator[Proof]:
    victim = hunt.stateful
    later = {key: answer for key, answer in victim.answers.items() if key not in victim.questions}
    if not later or not victim.rounds[-1].answer.done:
        text = f"{victim.name} asks for nothing in a later round that it does not ask for in the first"
        raise NotTried(text)
    state, responses = hunt.begun(victim)
    ahead = hunt.call(victim, requestState=state, inputResponses=responses | later)
    if ahead.answer.done:
        yield Proof(ahead, f"answers to {', '.join(later)}, which had not been asked yet, completed the call")


def _malformed(hunt: Hunt) -> Iterator[Proof]:
    victim = hunt.stateful
    state, responses = hunt.begun(victim)
    entries = ((f"{key}: {what}", {**responses, key: value}) for key in responses for what, value in ENTRIES)
    for what, value in (*MALFORMED, *entries):
        sent = hunt.call(victim, requestState=state, inputResponses=value)
        if hunt.went_on(victim, sent.answer):
            yield Proof(sent, f"inputResponses were {what}, and the server went on: {sent.answer}")


def _unfit(hunt: Hunt) -> Iterator[Proof]:
    victim = hunt.stateful
    state, responses = hunt.begun(victim)
    for key, what, value in _misfits(victim.questions, hunt.canary):
        sent = hunt.call(victim, requestState=state, inputResponses={**responses, key: value})
        if hunt.went_on(victim, sent.answer):
            yield Proof(sent, f"the answer to {key} did not fit ({what}), and the server went on: {sent.answer}")


def _undeclared(hunt: Hunt) -> Iterator[Proof]:
    for target, sent in _undeclared_calls(hunt):
        if sent.answer.asked:
            yield Proof(sent, f"the client declared nothing, and {target.name} asks it: {sent.answer}")


def _refusal(hunt: Hunt) -> Iterator[Proof]:
    for _target, sent in _undeclared_calls(hunt):
        answer = sent.answer
        data = (answer.error or {}).get("data")
        named = isinstance(data, dict) and isinstance(data.get("requiredCapabilities"), dict)
        right = (answer.status, answer.code) == (BAD_REQUEST, MISSING_CAPABILITY) and named
        if answer.error is not None and not right and not answer.undecided:
            yield Proof(sent, f"the client declared nothing, and is told: {answer}, data {data!r:.100}")


def _modes(hunt: Hunt) -> Iterator[Proof]:
    for target in hunt.targets or [hunt.victim]:
        sent = hunt.call(target, capabilities={"elicitation": {"url": {}}})
        if any(_is_form(request) for request in (sent.answer.asked or {}).values()):
            yield Proof(sent, f"the client shows no forms, only pages, and {target.name} sends it a form")


def _undeclared_calls(hunt: Hunt) -> Iterator[tuple[Target, Exchange]]:
    """Call whatever asks for a client that can do nothing; in a later round too."""
    victim = hunt.victim
    for target in hunt.targets:
        yield target, hunt.call(target, capabilities={})
    if len([one for one in victim.rounds if one.answer.asked]) > 1 and victim.rounds[0].answer.state:
        state, responses = hunt.begun(victim)
        yield victim, hunt.call(victim, requestState=state, inputResponses=responses, capabilities={})


def _misfits(questions: Mapping[str, Any], canary: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for key, request in questions.items():
        params = request.get("params") or {}
        if not _is_form(request):
            continue
        yield key, "an action that does not exist", {**forms.response(request), "action": "yes"}
        if schema := params.get("requestedSchema"):
            for what, content in forms.unfit(schema, canary):
                yield key, what, {"action": "accept", "content": content}
            if schema.get("required"):
                yield key, "accepted without content", {"action": "accept"}


def _is_form(request: Mapping[str, Any]) -> bool:
    params = request.get("params") or {}
    return request.get("method") == "elicitation/create" and params.get("mode", "form") == "form"


CHECKS = (
    Check("cold-answers", Severity.DEVIATION, Basis.OPINION, MRTR, COLD, _cold),
    Check("answers-ahead", Severity.DEVIATION, Basis.OPINION, MRTR, COLD, _ahead),
    Check("answers-malformed", Severity.DEVIATION, Basis.SHOULD, f"{MRTR}, Error Handling", VALID, _malformed),
    Check("answers-that-do-not-fit", Severity.DEVIATION, Basis.SHOULD, "client/elicitation, Security", FITS, _unfit),
    Check("undeclared-capability", Severity.DEVIATION, Basis.MUST, MRTR, UNDECLARED, _undeclared),
    Check("undeclared-mode", Severity.DEVIATION, Basis.MUST, "client/elicitation, Capabilities", MODES, _modes),
    Check("capability-error", Severity.DEVIATION, Basis.MUST, "basic, Per-request fields", REFUSAL, _refusal),
)  # fmt: skip
