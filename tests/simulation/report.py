"""The numbers as Markdown: what `make simulate` prints, and what it writes between the marks of docs/simulation.md."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mcp_functions.seal.key_choice import EPOCH_SECONDS
from tests.simulation.fleet import Load
from tests.simulation.plan import ALONE, CEILING, NAIVE, OURS, SIZES, USUAL, VARIATIONS, WARM_UP

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.simulation.plan import Results

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "simulation.md"
BEGIN, END = "<!-- written by `make simulate`: begin -->", "<!-- end -->"
USD_PER_CALL = 0.03 / 10_000


def markdown(results: Results) -> str:
    """Write the tables, under the parameters that they hold for."""
    return "\n".join([parameters(), "", *_designs(results), "", *_variations(results)])


def parameters() -> str:
    """Describe the simulated fleets."""
    load = Load(1)
    counted = ", ".join(f"{size}: {effort.epochs} x {effort.seeds}" for size, effort in SIZES.items())
    return (
        f"Routing is random, at {load.rate:g} request a second and container. A conversation has {load.questions}"
        f" questions; {load.answered:.0%} of them are answered, after a lognormal time (median {load.median:g} s, sigma"
        f" {load.sigma:g}), at most {load.lifetime} s. Containers live {load.alive / 3600:g} h on average"
        f" (exponential). An epoch is {EPOCH_SECONDS} s; the first {WARM_UP} are not counted. A round is a question: a"
        " state is sealed, and opened when its answer comes. Counted epochs x seeds, by containers:"
        f" {counted} (fewer for the other designs)."
    )


def heads() -> list[str]:
    """Name the columns of the comparison."""
    return ["containers", *(head for design in (NAIVE, ALONE, OURS) for head in (design, "wait"))]


def written(page: str, tables: str) -> str:
    """Put the tables between the marks of a page."""
    before, _begin, rest = page.partition(BEGIN)
    _old, _end, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables}\n{END}{after}"


def _designs(results: Results) -> list[str]:
    rows = []
    for size in _sizes(results):
        row = [str(size)]
        for design in (NAIVE, ALONE, OURS):
            steady = results[USUAL, design, size].steady
            row += [_number(steady.calls_per_million), _share(steady.waiting_share)]
        rows.append(row)
    note = (
        f"KMS calls per million rounds in steady state (at most {_number(CEILING)} for this design, with every seed), "
        "and the share of requests that wait for KMS:"
    )
    return [note, "", *_table(heads(), rows)]


def _variations(results: Results) -> list[str]:
    shown = ["containers", "USD per million rounds", "minimum and maximum, by seed", "calls per container, cold start"]
    others = [name for name in VARIATIONS if name != USUAL]
    rows = []
    for size in _sizes(results):
        found = results[USUAL, OURS, size]
        row = [str(size), f"{found.steady.calls_per_million * USD_PER_CALL:.4f}"]
        row += [f"{_number(min(found.each))} to {_number(max(found.each))}"]
        row += [f"{found.cold.calls / size / len(found.each):.1f}"]
        row += [_number(results[name, OURS, size].steady.calls_per_million) for name in others]
        rows.append(row)
    note = (
        "More about this design: its price (0.03 USD for 10 000 calls) and the spread between seeds. The cold start is "
        "the KMS calls of each container in its first quarter of an hour, if all start at once. The last columns are "
        "calls per million rounds under other loads:"
    )
    return [note, "", *_table([*shown, *others], rows)]


def _sizes(results: Results) -> list[int]:
    return sorted({size for _variation, _design, size in results})


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [columns, ["--:"] * len(columns), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def _number(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ")


def _share(value: float) -> str:
    return "all" if value == 1 else f"{value:.2%}"
