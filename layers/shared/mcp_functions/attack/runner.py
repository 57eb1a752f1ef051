"""Runs all checks against one server, and collects their findings in a report.

First it finds calls to attack. Then each check with `run` sends its requests. At the end each check with `watch`
examines every exchange of the run.
"""

from __future__ import annotations

import time
from itertools import islice
from typing import TYPE_CHECKING, Any

from mcp_functions.attack.checks import CHECKS
from mcp_functions.attack.client import CALLER, OTHER
from mcp_functions.attack.discovery import find_targets
from mcp_functions.attack.findings import Proof, Report, Severity
from mcp_functions.attack.scan import DEFAULT_BOUNDS, LimitReached, Scan, SkipCheck

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mcp_functions.attack.client import Exchange
    from mcp_functions.attack.findings import Check
    from mcp_functions.attack.scan import Bounds

MAX_PROOFS = 40  # proofs of one finding that are kept
ORDER = list(Severity)  # the worst first
LIMIT_REASON = "the bounds of the run were used up: --requests, --seconds"


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
        scan.targets = find_targets(scan, named)
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
