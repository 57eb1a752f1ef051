"""The figures as Markdown: what `make bench` prints, and what stands between the marks of docs/performance.md."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.benchmarks.cases import CASES, TABLES
from tests.benchmarks.entrants import ENTRANTS, FLOOR
from tests.benchmarks.figures import decile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tests.benchmarks.cases import Case
    from tests.benchmarks.figures import Figure, Results

DOCS = Path(__file__).parents[2] / "docs"
PAGE, PICTURE, DATA = DOCS / "performance.md", DOCS / "performance.png", DOCS / "performance.json"
BEGIN, END = "<!-- written by `make bench`: begin -->", "<!-- end -->"
COLD = ("contender", "path", "CPU ms", "p10 to p90", "wall ms", "MB", "modules", "x fastest peer", "x floor")
WARM = ("contender", "path", "CPU µs", "p10 to p90", "wall µs", "x fastest peer", "x floor")
DIRECT, DOOR = "directly", "`/mcp`, then the function"


def markdown(results: Results) -> str:
    """Write everything that was measured."""
    parts = [about(results)]
    for name, title in TABLES.items():
        cases = [case for case in CASES if case.table == name]
        if rows := [row for case in cases for row in _rows(results, case, cases[0])]:
            columns = COLD if cases[0].start == "cold" else WARM
            parts += [f"### {title}", "\n".join(table(columns, rows))]
    return "\n\n".join([*parts, *_absent(results)])


def about(results: Results) -> str:
    """Say when, where and how."""
    told = results.about
    return (
        f"{told['date']}, {told['machine']}, {told['python']}; `{told['command']}`, seed {told['seed']},"
        f" {told['rounds']} rounds."
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Write a table: its first column to the left, figures to the right."""
    lines = [columns, [":--", *["--:"] * (len(columns) - 1)], *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def number(value: float) -> str:
    """Write a figure with three digits that say something."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}".replace(",", " ")


def times(value: float | None) -> str:
    """Write a ratio."""
    return "" if value is None else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def written(page: str, tables: str) -> str:
    """Put the tables between the marks of a page."""
    before, _begin, rest = page.partition(BEGIN)
    _old, _end, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables}\n{END}{after}"


def _rows(results: Results, case: Case, first: Case) -> Iterator[list[str]]:
    """Write the rows of one case; `first` is the case of its table that peers take part in."""
    peer = results.fastest_peer(first.name)
    for title in case.entrants:
        if found := results.get(case.name, title):
            ratios = [times(results.ratio(case.name, title, first.name, by)) if by else "" for by in (peer, FLOOR)]
            yield [title, DOOR if case.door else DIRECT, *_cells(case, found), *ratios]


def _cells(case: Case, found: Figure) -> list[str]:
    unit = 1000 if case.start == "cold" else 1
    spread = f"{number(decile(found.cpu, 1) / unit)} to {number(decile(found.cpu, 9) / unit)}"
    cells = [number(found.median / unit), spread, number(decile(found.wall, 5) / unit)]
    return [*cells, f"{found.memory:.0f}", str(found.modules)] if case.start == "cold" else cells


def _absent(results: Results) -> list[str]:
    lines = [f"- not measured: {what}: {why}" for what, why in results.absent.items()]
    notes = [f"- {entrant.title}: {entrant.note}" for entrant in ENTRANTS.values() if entrant.note]
    return ["\n".join([*notes, *lines])]
