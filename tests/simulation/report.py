"""The numbers as Markdown: what `make simulate` prints, and what it writes between its marks in docs/performance.md."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mcp_functions.seal.key_choice import EPOCH_SECONDS
from tests.simulation.fleet import Load
from tests.simulation.plan import ALONE, CEILING, OURS, USUAL, VARIATIONS, WARM_UP

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.simulation.plan import Results

DOCS = Path(__file__).parents[2] / "docs"
PAGE, PICTURE = DOCS / "performance.md", DOCS / "kms-calls.png"
BEGIN, END = "<!-- written by `make simulate`: begin -->", "<!-- end -->"
_OTHERS = [name for name in VARIATIONS if name != USUAL]


def markdown(results: Results) -> str:
    """Write the table, under the parameters that it holds for."""
    limit = f"This design may make {_number(CEILING)} calls at most, with every seed."
    return "\n".join([f"{parameters()} {limit}", "", *_table(heads(), _rows(results))])


def parameters() -> str:
    """Describe the simulated fleets."""
    load = Load(1)
    return (
        f"Random routing, {load.rate:g} request a second and container; {load.questions} questions a conversation,"
        f" {load.answered:.0%} answered after a lognormal time (median {load.median:g} s, sigma {load.sigma:g}, at most"
        f" {load.lifetime} s). Containers live {load.alive / 3600:g} h on average (exponential). The first {WARM_UP}"
        f" epochs of {EPOCH_SECONDS} s are not counted."
    )


def heads() -> list[str]:
    """Name the columns of the comparison."""
    return ["containers", ALONE, OURS, "wait for KMS", *_OTHERS, "cold start, each"]


def written(page: str, tables: str) -> str:
    """Put the tables between the marks of a page."""
    before, _begin, rest = page.partition(BEGIN)
    _old, _end, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables}\n{END}{after}"


def _rows(results: Results) -> Iterable[list[str]]:
    for size in _sizes(results):
        found = results[USUAL, OURS, size]
        designs = [results[USUAL, design, size].steady for design in (ALONE, OURS)]
        others = [results[name, OURS, size].steady for name in _OTHERS]
        calls = [_number(one.calls_per_million) for one in (*designs, *others)]
        cold = f"{found.cold.calls / size / len(found.each):.1f}"
        yield [str(size), *calls[:2], f"{found.steady.waiting_share:.2%}", *calls[2:], cold]


def _sizes(results: Results) -> list[int]:
    return sorted({size for _variation, _design, size in results})


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [columns, ["--:"] * len(columns), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def _number(value: float) -> str:
    return f"{value:,.0f}"
