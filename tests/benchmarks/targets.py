"""The targets of the project: a row for each target, with the measurement of one run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.benchmarks.cases import KILOBYTES, ROUNDS, TOOLS
from tests.benchmarks.entrants import AWSLABS, LIGHT, LOWLEVEL, OBSERVED, OURS, SDK, SDK_KMS

if TYPE_CHECKING:
    from tests.benchmarks.figures import Results


class Target(NamedTuple):
    """At most so many times what a peer takes, in processor time.

    Attributes:
        title: in the table.
        ours: case and contender.
        theirs: case and contender.
        most: times.

    """

    title: str
    ours: tuple[str, str]
    theirs: tuple[str, str]
    most: float


class Verdict(NamedTuple):
    """The result of one target; `found` is None if it was not measured."""

    title: str
    most: float
    found: float | None

    @property
    def met(self) -> bool:
        """Whether it was measured, and is met."""
        return self.found is not None and self.found <= self.most

    @property
    def word(self) -> str:
        """Describe the target and its result."""
        if self.found is None:
            return "not measured"
        return "met" if self.met else "missed"


TARGETS = (
    Target("cold `add`, direct, compared with awslabs", ("cold-add", OURS), ("cold-add", AWSLABS), 0.25),
    Target(
        "cold `add` through `/mcp`, logs on, compared with awslabs, direct",
        ("cold-add-door", OBSERVED),
        ("cold-add", AWSLABS),
        0.60,
    ),
    Target(
        "cold first sealed round with a pydantic form, compared with mcp + Mangum with a boto3 codec",
        ("cold-ask", OURS),
        ("cold-ask", SDK_KMS),
        0.25,
    ),
    Target(
        "cold first sealed round with a form without pydantic, compared with the same",
        ("cold-ask", LIGHT),
        ("cold-ask", SDK_KMS),
        0.14,
    ),
    # Guards, a little above a quiet run, beside a peer that does the same work: a change that makes a warm round slower
    # by accident misses them. docs/performance.md names the goals that they replace.
    Target("guard: warm call, compared with mcp lowlevel", ("warm-call", OURS), ("warm-call", LOWLEVEL), 0.28),
    Target("guard: warm list of 50, compared with mcp lowlevel", ("warm-list", OURS), ("warm-list", LOWLEVEL), 0.07),
    Target("guard: warm ask, compared with mcp lowlevel", ("warm-ask", OURS), ("warm-ask", LOWLEVEL), 0.75),
    Target("guard: warm answer, compared with mcp lowlevel", ("warm-answer", OURS), ("warm-answer", LOWLEVEL), 0.75),
    Target("guard: warm middle, compared with mcp lowlevel", ("warm-middle", OURS), ("warm-middle", LOWLEVEL), 0.95),
)
STATES = (  # KB, the table, the quantity, and the limit as a multiple of mcp + Mangum
    (16, "state", "long strings", 0.6),  # a guard too
    (1024, "state", "long strings", 0.75),
    # A guard: the round reads its state again, to prove that the next round can. The peer does not.
    (1024, "state-rows", "rows of JSON", 1.3),
)
BIGGEST = KILOBYTES[-1]
SIGN_IN_MILLISECONDS = 250
LINEAR = 1.5  # times what the bytes alone would explain; a cost that is quadratic in rounds would be far above


def verdicts(results: Results) -> list[Verdict]:
    """Hold every target against a run."""
    compared = [Verdict(one.title, one.most, results.ratio(*one.ours, *one.theirs)) for one in TARGETS]
    states = [_state(results, *one) for one in STATES]
    return [*compared, _sign_in(results), *states, _bytes(results), _rounds(results), _lists(results)]


def _sign_in(results: Results) -> Verdict:
    """Hold a cold sign-in against its limit; no peer has one."""
    ours = results.get("cold-sign-in", OURS)
    found = ours.median / 1000 / SIGN_IN_MILLISECONDS if ours else None
    return Verdict(f"a whole cold sign-in, compared with {SIGN_IN_MILLISECONDS} ms", 1.0, found)


def _state(results: Results, kilobytes: int, table: str, content: str, most: float) -> Verdict:
    """Ask and answer together, round by round."""
    halves = [results.get(f"{table}-{half}", who, kilobytes) for who in (OURS, SDK) for half in ("ask", "answer")]
    ask, answer, their_ask, their_answer = halves
    found = None
    if ask and answer and their_ask and their_answer:
        found = (ask.median + answer.median) / (their_ask.median + their_answer.median)
    return Verdict(f"{kilobytes} KB of state as {content}, ask and answer, compared with mcp + Mangum", most, found)


def _bytes(results: Results) -> Verdict:
    """Say how a KB of the largest state compares with one of a sixteenth of it: 1 is linear."""
    small, big = (results.get("state-answer", OURS, size) for size in (BIGGEST // 16, BIGGEST))
    found = big.median / small.median / 16 if small and big else None
    return Verdict("1 KB of 1 MB of state, compared with 1 KB of 64 KB: linear in bytes", LINEAR, found)


def _rounds(results: Results) -> Verdict:
    """Say how round 9 compares with a straight line through rounds 2 and 5.

    The first round opens nothing, and the last (after ten questions) seals nothing: neither takes part.
    """
    title = "round 9, compared with the forecast from rounds 2 to 5: linear in rounds"
    found = [results.get("rounds", OURS, number) for number in (2, 5, ROUNDS - 1)]
    if not all(found):
        return Verdict(title, LINEAR, None)
    early, middle, late = (one.median for one in found if one)
    foretold = middle + (middle - early) * (ROUNDS - 1 - 5) / (5 - 2)
    return Verdict(title, LINEAR, late / max(foretold, middle))


def _lists(results: Results) -> Verdict:
    """Say how a tool in a list of 500 compares with one in a list of 50: 1 is linear."""
    few, many = (results.get("tools", OURS, size) for size in (TOOLS[-1] // 10, TOOLS[-1]))
    found = many.median / few.median / 10 if few and many else None
    return Verdict("one tool in a list of 500, compared with one in a list of 50: linear in tools", LINEAR, found)
