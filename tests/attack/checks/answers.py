"""Checks of answers to questions that were not asked, or that do not fit; and of questions that were not declared.

The docstring of a check is the sentence that it tests. The check yields a `Proof` for each exchange in which the server
did what the sentence forbids.
"""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from mcp_functions.protocol.wire_types import InputRequest
from mcp_functions_harness.client import schema_values
from mcp_functions_harness.client.http import Exchange
from tests.attack import other_values
from tests.attack.findings import Basis, Proof, Severity, check
from tests.attack.scan import Scan, SkipCheck, Target

MRTR = "basic/patterns/mrtr"
MISSING_CAPABILITY = -32021
# Values that cannot be `inputResponses`, and values that cannot be one of its entries; each with its description.
MALFORMED: tuple[tuple[str, Any], ...] = (("a number", 7), ("a list", []), ("a text", "yes"))
ENTRIES: tuple[tuple[str, Any], ...] = (("null", None), ("a number", 7), ("a list", []), ("an empty object", {}))


@check(Severity.DEVIATION, Basis.OPINION, MRTR)
def cold_answers(scan: Scan) -> Iterator[Proof]:
    """Send answers with a first request, before any question.

    an answer counts only for a question that was asked: a server that issues a requestState should not complete a
    call without one.
    """
    victim = scan.require_victim_with_state()
    exchange = scan.call(victim, inputResponses=victim.answers)
    if scan.has_advanced(victim, exchange.response):
        yield Proof(exchange, f"answers without a state, to questions that nobody had asked: {exchange.response}")


@check(Severity.DEVIATION, Basis.OPINION, MRTR)
def answers_ahead(scan: Scan) -> Iterator[Proof]:
    """Send the answer to a later question together with the first one.

    an answer counts only for a question that was asked: a server that issues a requestState should not complete a
    call without one.
    """
    victim = scan.require_victim_with_state()
    later = {key: answer for key, answer in victim.answers.items() if key not in victim.questions}
    if not later:
        raise SkipCheck(reason=f"{victim.name} asks for nothing in a later round that it does not ask for in the first")
    state, answers = scan.begin(victim)
    exchange = scan.call(victim, requestState=state, inputResponses=answers | later)
    if exchange.response.done:
        yield Proof(exchange, f"answers to {', '.join(later)}, which had not been asked yet, completed the call")


@check(Severity.DEVIATION, Basis.SHOULD, f"{MRTR}, Error Handling")
def answers_malformed(scan: Scan) -> Iterator[Proof]:
    """Send answers that are not an InputResponses object.

    Servers SHOULD validate that the data provided by the client is a valid InputResponses object and that the
    information inside can be correctly parsed.
    """
    victim = scan.require_victim_with_state()
    state, answers = scan.begin(victim)
    responses = list(MALFORMED)
    for key in answers:
        responses += [(f"{key}: {description}", {**answers, key: entry}) for description, entry in ENTRIES]
    for description, response in responses:
        exchange = scan.call(victim, requestState=state, inputResponses=response)
        if scan.has_advanced(victim, exchange.response):
            yield Proof(exchange, f"inputResponses were {description}, and the server went on: {exchange.response}")


@check(Severity.DEVIATION, Basis.SHOULD, "client/elicitation, Security")
def answers_that_do_not_fit(scan: Scan) -> Iterator[Proof]:
    """Send answers that do not fit the schema of the form.

    Servers SHOULD validate received data matches the requested schema.
    """
    victim = scan.require_victim_with_state()
    state, answers = scan.begin(victim)
    for key, request in victim.questions.items():
        for description, answer in _misfits(request, scan.canary):
            exchange = scan.call(victim, requestState=state, inputResponses={**answers, key: answer})
            if scan.has_advanced(victim, exchange.response):
                outcome = f"and the server went on: {exchange.response}"
                yield Proof(exchange, f"the answer to {key} did not fit ({description}), {outcome}")


@check(Severity.DEVIATION, Basis.MUST, MRTR)
def undeclared_capability(scan: Scan) -> Iterator[Proof]:
    """Look for questions that the client did not declare.

    Servers MUST NOT send an inputRequests that the client has not declared support for in its capabilities.
    """
    for target, exchange in _calls_without_capabilities(scan):
        if exchange.response.questions:
            yield Proof(exchange, f"the client declared nothing, and {target.name} asks it: {exchange.response}")


@check(Severity.DEVIATION, Basis.MUST, "client/elicitation, Capabilities")
def undeclared_mode(scan: Scan) -> Iterator[Proof]:
    """Look for elicitations in a mode that the client did not declare.

    Servers MUST NOT send elicitation requests with modes that are not supported by the client.
    """
    scan.require_victim()
    for target in scan.targets:
        exchange = scan.call(target, capabilities={"elicitation": {"url": {}}})
        if any(_is_form(request) for request in (exchange.response.questions or {}).values()):
            yield Proof(exchange, f"the client shows no forms, only pages, and {target.name} sends it a form")


@check(Severity.DEVIATION, Basis.MUST, "basic, Per-request fields")
def capability_error(scan: Scan) -> Iterator[Proof]:
    """Call without capabilities, and look at the error.

    the server MUST return a MissingRequiredClientCapabilityError (-32021) whose data.requiredCapabilities lists the
    missing capabilities. On HTTP, the response status MUST be 400 Bad Request.
    """
    for _target, exchange in _calls_without_capabilities(scan):
        response = exchange.response
        if response.error is None or response.undecided:
            continue
        data = response.error.get("data")
        names_capabilities = isinstance(data, dict) and isinstance(data.get("requiredCapabilities"), dict)
        if (response.status, response.code) != (HTTPStatus.BAD_REQUEST, MISSING_CAPABILITY) or not names_capabilities:
            yield Proof(exchange, f"the client declared nothing, and is told: {response}, data {data!r:.100}")


def _calls_without_capabilities(scan: Scan) -> Iterator[tuple[Target, Exchange]]:
    """Call all targets as a client without capabilities; the victim also in its second round."""
    victim = scan.require_victim()
    for target in scan.targets:
        yield target, scan.call(target, capabilities={})
    if victim.question_rounds > 1 and victim.gives_state:
        state, answers = scan.begin(victim)
        yield victim, scan.call(victim, capabilities={}, requestState=state, inputResponses=answers)


def _misfits(request: InputRequest, canary: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield answers that do not fit a form, each with a description; none for another question."""
    if not _is_form(request):
        return
    yield "an action that does not exist", {**schema_values.answer(request), "action": "yes"}
    schema = (request.get("params") or {}).get("requestedSchema") or {}
    for description, content in other_values.misfits(schema, canary):
        yield description, {"action": "accept", "content": content}
    if schema.get("required"):
        yield "accepted without content", {"action": "accept"}


def _is_form(request: Mapping[str, Any]) -> bool:
    params = request.get("params") or {}
    return request.get("method") == "elicitation/create" and params.get("mode", "form") == "form"
