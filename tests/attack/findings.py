"""Checks, findings and the report.

A check tests one sentence of the specification, or of another source. It is a function with a decorator:

    @check(Severity.HOLE, Basis.MUST, "basic/patterns/mrtr")
    def state_forged(scan: Scan) -> Iterator[Proof]:     the check "state-forged"
        '''Send states that no server has made.

        servers MUST protect its integrity …             the sentence that it tests, which the report quotes
        '''

A finding is a check that failed, with proofs: exchanges of a request and its response.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from tests.attack.scan import Exchange, Scan


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
    description: str


@dataclass(frozen=True)
class Check:
    """One check: a function that sends requests (`run`), or that examines an exchange of the run (`watch`).

    The function has the name of the check. Its docstring ends with the sentence that is checked: quoted, unless it is
    the authors' opinion.
    """

    severity: Severity
    basis: Basis
    section: str  # the section of the specification 2026-07-28, or of another source
    run: Callable[[Scan], Iterable[Proof]] | None = None
    watch: Callable[[Exchange], str | None] | None = None  # returns what is wrong with the response

    @property
    def name(self) -> str:
        """The name, for example "state-forged"."""
        return self._function.__name__.replace("_", "-")

    @property
    def sentence(self) -> str:
        """The sentence in one line."""
        _summary, _, sentence = (self._function.__doc__ or "").partition("\n\n")
        return " ".join(sentence.split())

    @property
    def _function(self) -> Callable[..., object]:
        function = self.run or self.watch
        assert function
        return function


def check(severity: Severity, basis: Basis, section: str) -> Callable[[Callable[[Scan], Iterable[Proof]]], Check]:
    """Make a check of a function that sends requests."""
    return lambda function: Check(severity, basis, section, run=function)


def watch(severity: Severity, basis: Basis, section: str) -> Callable[[Callable[[Exchange], str | None]], Check]:
    """Make a check of a function that examines each exchange of the run."""
    return lambda function: Check(severity, basis, section, watch=function)


@dataclass(frozen=True)
class Finding:
    """A check and its proofs, the plainest first."""

    check: Check
    proofs: Sequence[Proof]


@dataclass
class Report:
    """The outcome of a run."""

    url: str
    target: str = ""  # the calls that ask, described
    findings: list[Finding] = field(default_factory=list)  # the worst first
    passed: list[str] = field(default_factory=list)  # names of the checks without a finding
    not_tried: dict[str, str] = field(default_factory=dict)  # names of the skipped checks, with the reason
    without_verdict: dict[str, int] = field(default_factory=dict)  # by check: requests answered with 429 or 503
    requests: int = 0
    spent: bool = False  # whether the limits ended the run early

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
