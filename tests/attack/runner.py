"""Runs all checks against one server, and collects their findings in a report.

First it calls everything that the server lists once, to find the calls that are answered with a question. Each of them
(a `Target`) has the rounds of a correct conversation, which the checks imitate and change. Then each check with `run`
sends its requests. At the end each check with `watch` examines every exchange of the run.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from mcp_functions_harness.client import messages, schema_values
from mcp_functions_harness.client.http import CALLER, OTHER, Exchange
from tests.attack.checks import CHECKS
from tests.attack.findings import Check, Proof, Report, Severity
from tests.attack.scan import DEFAULT_BOUNDS, Bounds, LimitReached, Scan, SkipCheck, Target

if TYPE_CHECKING:
    from mcp_functions.protocol.wire_types import Params

MAX_PAGES = 5  # pages of a list that are read
MAX_CALLS = 60  # calls that are tried
VARIABLE = re.compile(r"\{\+?\w+\}")  # a variable of a URI template
MAX_PROOFS = 40  # proofs of one finding that are kept
ORDER = list(Severity)  # the worst first
LIMIT_REASON = "the bounds of the run were used up"


def attack(  # noqa: PLR0913 - keywords, most of them rarely given
    url: str,
    *,
    headers: Sequence[tuple[str, str]] = (),
    other_headers: Sequence[tuple[str, str]] = (),
    named: Sequence[tuple[str, dict[str, Any]]] = (),
    lifetime: float | None = None,
    bounds: Bounds = DEFAULT_BOUNDS,
    checks: Sequence[Check] = CHECKS,
    wait: Callable[[float], object] = time.sleep,
) -> Report:
    """Attack your own server.

    Args:
        url: the URL of the MCP endpoint.
        headers: the caller's credentials.
        other_headers: the credentials of a second person.
        named: tools that ask, with their arguments; the first is attacked. Without any, everything listed is called.
        lifetime: seconds after which the server promises that a state has expired.
        bounds: the limits of the run.
        checks: the checks to run, in their order.
        wait: sleeps for a number of seconds, until a state has expired.
    """
    scan = Scan(url, {CALLER: headers, OTHER: other_headers}, bounds, lifetime, wait)
    report = Report(url)
    try:
        scan.targets = _find_targets(scan, named)
    except LimitReached:
        report.spent = True
    report.target = "; ".join(map(str, scan.targets)) or "nothing that asks"
    for check in checks:
        if check.run:
            _run(check, check.run, scan, report)
    for check in checks:
        if check.watch:
            report.add(check, _watch(check.watch, scan))
    report.findings.sort(key=lambda finding: ORDER.index(finding.check.severity))
    report.requests = len(scan.exchanges)
    return report


def _find_targets(scan: Scan, named_tools: Sequence[tuple[str, dict[str, Any]]]) -> list[Target]:
    """Find the calls that ask.

    Args:
        scan: the run.
        named_tools: tools with their arguments; if there are any, nothing else is called, and their order is kept.
    """
    candidates = _calls_of_named_tools(scan, named_tools) if named_tools else _calls_of_lists(scan)
    targets = []
    for candidate in islice(candidates, MAX_CALLS):
        if scan.call(candidate).response.questions:
            target = scan.hold_conversation(candidate)
            if target.questions and len(target.rounds) > 1:
                targets.append(target)
    if named_tools:
        return targets
    return sorted(targets, key=_rank)


def _rank(target: Target) -> tuple[bool, int]:
    """Rank a call that answers complete, and that returns states, before others; then the one with more rounds."""
    is_complete = target.completes and target.gives_state
    return not is_complete, -len(target.rounds)


def _calls_of_named_tools(scan: Scan, named_tools: Sequence[tuple[str, dict[str, Any]]]) -> Iterator[Target]:
    schemas: dict[str, Any] = {
        str(tool.get("name")): tool.get("inputSchema") or {} for tool in _read_list(scan, "tools/list", "tools")
    }
    for name, arguments in named_tools:
        yield Target("tools/call", {"name": name, "arguments": arguments}, schemas.get(name, {}))


def _calls_of_lists(scan: Scan) -> Iterator[Target]:
    for tool in _read_list(scan, "tools/list", "tools"):
        schema: Any = tool.get("inputSchema") or {}
        params = {"name": tool.get("name"), "arguments": schema_values.example(schema)}
        yield Target("tools/call", params, schema)
    for prompt in _read_list(scan, "prompts/list", "prompts"):
        arguments = prompt.get("arguments") or []
        schema = {"properties": {str(argument.get("name")): {"type": "string"} for argument in arguments}}
        required = {argument.get("name"): "example" for argument in arguments if argument.get("required")}
        yield Target("prompts/get", {"name": prompt.get("name"), "arguments": required}, schema)
    for resource in _read_list(scan, "resources/list", "resources"):
        yield Target("resources/read", {"uri": resource.get("uri")})
    for template in _read_list(scan, "resources/templates/list", "resourceTemplates"):
        uris = [VARIABLE.sub(text, str(template.get("uriTemplate"))) for text in ("example", "1", "2")]
        yield Target("resources/read", {"uri": uris[0]}, similar=[{"uri": uris[1]}, {"uri": uris[2]}])
        yield Target("resources/read", {"uri": uris[1]}, similar=[{"uri": uris[2]}])


def _read_list(scan: Scan, method: str, key: str) -> list[dict[str, Any]]:
    """Return the entries of a list; [] if the server has no such list."""
    entries: list[dict[str, Any]] = []
    params: Params = {}
    for _ in range(MAX_PAGES):
        message = messages.message(method, params, next(scan.ids))
        result = scan.send(messages.write(message)).response.result or {}
        page = result.get(key)
        if isinstance(page, list):
            entries += [entry for entry in page if isinstance(entry, dict)]
        if not isinstance(result.get("nextCursor"), str):
            break
        params = {"cursor": result["nextCursor"]}
    return entries


def _run(check: Check, run: Callable[[Scan], Iterable[Proof]], scan: Scan, report: Report) -> None:
    proofs: list[Proof] = []
    reason = ""  # why the check was not run to its end
    first = len(scan.exchanges)
    try:
        proofs.extend(run(scan))  # keeps the proofs before an exception
    except SkipCheck as skipped:
        reason = str(skipped)
    except LimitReached:
        reason = LIMIT_REASON
        report.spent = True
    if reason and not proofs:
        report.not_tried[check.name] = reason
        return
    report.add(check, proofs[:MAX_PROOFS])
    without_verdict = sum(exchange.response.undecided for exchange in scan.exchanges[first:])
    if without_verdict:
        report.without_verdict[check.name] = without_verdict


def _watch(watch: Callable[[Exchange], str | None], scan: Scan) -> list[Proof]:
    """Examine every exchange of the run. Of equal descriptions, only the first is a proof."""
    proofs: dict[str, Proof] = {}
    for exchange in scan.exchanges:
        description = watch(exchange)
        if description:
            proofs.setdefault(description, Proof(exchange, description))
    return list(islice(proofs.values(), MAX_PROOFS))
