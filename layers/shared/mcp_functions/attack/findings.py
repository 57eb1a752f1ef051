"""Checks, findings and the report. A check names its source, a finding proves itself with responses."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mcp_functions.attack.client import Exchange
    from mcp_functions.attack.scan import Scan


class Severity(StrEnum):
    """A hole lets a hostile client do what it must not; only holes set the exit code to 1."""

    HOLE = "hole"
    DEVIATION = "deviation"
    INFORMATION = "information"


class Basis(StrEnum):
    """The strength of the sentence that is checked: the specification's word, or the authors' opinion."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    OPINION = "opinion"


class Proof(NamedTuple):
    """An exchange that proves a finding, and its description."""

    exchange: Exchange
    what: str


@dataclass(frozen=True)
class Check:
    """One check: it has either `run` or `watch`.

    Attributes:
        name: in kebab-case.
        severity: of a finding.
        basis: of the sentence.
        section: of the specification 2026-07-28, or of another source.
        sentence: that is checked, quoted; the authors' own, if it is an opinion.
        run: sends requests and yields a proof of each finding; raises SkipCheck.
        watch: examines any exchange of the run, given the planted text, and returns what is wrong with it, or None.

    """

    name: str
    severity: Severity
    basis: Basis
    section: str
    sentence: str
    run: Callable[[Scan], Iterable[Proof]] | None = None
    watch: Callable[[Exchange, str], str | None] | None = None


@dataclass(frozen=True)
class Finding:
    """A check and its proofs, the plainest first."""

    check: Check
    proofs: Sequence[Proof]


@dataclass
class Report:
    """The outcome of a run.

    Attributes:
        url: of the server.
        target: the calls that ask a question, described.
        findings: the worst first.
        passed: names of the checks without a finding.
        not_tried: names of the skipped checks, with the reason.
        without_verdict: by check, the number of requests that the server did not judge (429, or 503 with Retry-After).
        requests: that were sent.
        spent: whether the limits ended the run early.

    """

    url: str
    target: str = ""
    findings: list[Finding] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    not_tried: dict[str, str] = field(default_factory=dict)
    without_verdict: dict[str, int] = field(default_factory=dict)
    requests: int = 0
    spent: bool = False

    @property
    def holes(self) -> list[Finding]:
        """The findings that are holes."""
        return [finding for finding in self.findings if finding.check.severity is Severity.HOLE]

    def add(self, check: Check, proofs: Sequence[Proof]) -> None:
        """Add the result of a check: a finding if there are proofs."""
        if proofs:
            self.findings.append(Finding(check, proofs))
        else:
            self.passed.append(check.name)
