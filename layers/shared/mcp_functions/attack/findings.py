"""What is checked, and what was found: each check names the sentence that it stands on, each finding its proof."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mcp_functions.attack.hunt import Hunt
    from mcp_functions.attack.sending import Exchange


class Severity(StrEnum):
    """How bad it is: a hole lets a hostile client do what it must not; only a hole makes the exit status 1."""

    HOLE = "hole"
    DEVIATION = "deviation"
    INFORMATION = "information"


class Basis(StrEnum):
    """What says so: the specification with its MUST or its SHOULD, or nobody but us."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    OPINION = "opinion"


class Proof(NamedTuple):
    """One answer that proves a finding, and what was done to get it."""

    exchange: Exchange
    what: str


class NotTried(Exception):
    """A check has nothing to work with here; the text says what it would need."""


@dataclass(frozen=True)
class Check:
    """A row of the table.

    Attributes:
        name: in kebab-case.
        severity: of a finding.
        basis: what says so.
        section: of the specification 2026-07-28, or of another source.
        sentence: that is tested, in its words; of an opinion, ours.
        run: tries, and yields a proof for each thing found; raises NotTried.
        watch: or looks at an answer, whatever it was for, and says what is wrong with it; is told the planted text.

    """

    name: str
    severity: Severity
    basis: Basis
    section: str
    sentence: str
    run: Callable[[Hunt], Iterable[Proof]] | None = None
    watch: Callable[[Exchange, str], str | None] | None = None


@dataclass(frozen=True)
class Finding:
    """A check and its proofs, the plainest first."""

    check: Check
    proofs: Sequence[Proof]


@dataclass
class Report:
    """All that a run has to say.

    Attributes:
        url: that was attacked.
        target: what it asked, in words.
        findings: the worst first.
        passed: names of the checks that found nothing.
        not_tried: names of the others, with the reason.
        without_verdict: by check, how often the server said that it could not tell now (429, or 503 with Retry-After).
        requests: that were sent.
        spent: whether the bounds ended the run before its time.

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
        """The findings that a server must not go out with."""
        return [finding for finding in self.findings if finding.check.severity is Severity.HOLE]
