"""A run: find what asks, try every check, look at every answer, and say what came of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mcp_functions.attack import finding_targets
from mcp_functions.attack.checks import CHECKS
from mcp_functions.attack.findings import Finding, NotTried, Proof, Report, Severity
from mcp_functions.attack.hunt import Bounds, Hunt
from mcp_functions.attack.sending import CALLER, OTHER, Line, Spent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mcp_functions.attack.findings import Check

MAX_PROOFS = 40
ORDER = list(Severity)
UNSPENT = "the bounds of the run were used up: --requests, --seconds"


def attack(  # noqa: PLR0913 - what its user may decide
    url: str,
    *,
    headers: Sequence[tuple[str, str]] = (),
    other_headers: Sequence[tuple[str, str]] = (),
    named: Sequence[tuple[str, dict[str, Any]]] = (),
    lifetime: float | None = None,
    bounds: Bounds | None = None,
    checks: Sequence[Check] = CHECKS,
    wait: Callable[[float], object] = time.sleep,
) -> Report:
    """Attack a server of one's own.

    Args:
        url: of the MCP endpoint.
        headers: the caller's credentials.
        other_headers: those of a second person.
        named: tools and arguments that ask, the one to attack first; if left out, everything listed is called once.
        lifetime: seconds after which the server promises that a state has expired.
        bounds: of the run.
        checks: to try, in their order.
        wait: lets seconds pass, until a state has expired.

    """
    allowed = bounds or Bounds()
    line = Line(url, {CALLER: headers, OTHER: other_headers}, requests=allowed.requests, seconds=allowed.seconds)
    hunt = Hunt(line, has_other=bool(other_headers), lifetime=lifetime, wait=wait)
    report = Report(url)
    try:
        hunt.targets = finding_targets.asking(hunt, named)
    except Spent:
        report.spent = True
    report.target = "; ".join(map(str, hunt.targets)) or "nothing that asks"
    for check in checks:
        if check.run:
            _try(check, hunt, report)
    for check in checks:
        if check.watch:
            _settle(check, _watched(check, hunt), report)
    report.findings.sort(key=lambda finding: ORDER.index(finding.check.severity))
    report.requests = len(line.exchanges)
    return report


def _try(check: Check, hunt: Hunt, report: Report) -> None:
    proofs: list[Proof] = []
    before, reason = len(hunt.line.exchanges), ""
    try:
        for proof in check.run(hunt) if check.run else ():
            proofs.append(proof)  # noqa: PERF402 - what was proved stays proved, however the check ends
    except NotTried as lacking:
        reason = str(lacking)
    except Spent:
        report.spent, reason = True, UNSPENT
    if reason and not proofs:
        report.not_tried[check.name] = reason
        return
    _settle(check, proofs, report)
    if without := sum(exchange.answer.undecided for exchange in hunt.line.exchanges[before:]):
        report.without_verdict[check.name] = without


def _settle(check: Check, proofs: Iterable[Proof], report: Report) -> None:
    if found := list(proofs)[:MAX_PROOFS]:
        report.findings.append(Finding(check, found))
    else:
        report.passed.append(check.name)


def _watched(check: Check, hunt: Hunt) -> list[Proof]:
    """Look at every answer of the run; of those that are wrong in the same words, the first."""
    said: dict[str, Proof] = {}
    for exchange in hunt.line.exchanges:
        if check.watch and (what := check.watch(exchange, hunt.canary)):
            said.setdefault(what, Proof(exchange, what))
    return list(said.values())
