"""The figures as Markdown: what `make bench` prints, and the shorter form that it writes into docs/performance.md."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.benchmarks import targets
from tests.benchmarks.cases import CASES, GROWTH, TABLES, growing
from tests.benchmarks.entrants import ENTRANTS, OURS
from tests.benchmarks.figures import decile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tests.benchmarks.cases import Case
    from tests.benchmarks.figures import Figure, Results

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGE, PICTURE, DATA = DOCS / "performance.md", DOCS / "performance.png", DOCS / "performance.json"
BEGIN, END = "<!-- written by `make bench`: begin -->", "<!-- end -->"
COLD = ("contender", "CPU ms", "p10-p90", "MB", "modules", "x fastest peer")
WARM = ("contender", "CPU µs", "p10-p90", "x fastest peer")
BUSY = 0.5  # load average, before this run adds its own
FOLDED = "The figures of this run"
DOOR = ", through `/mcp`"


def markdown(results: Results) -> str:
    """Write everything that was measured."""
    parts = []
    for name, title in TABLES.items():
        cases = [case for case in CASES if case.table == name]
        if rows := [row for case in cases for row in _rows(results, case, cases[0])]:
            columns = COLD if cases[0].start == "cold" else WARM
            parts.append("\n".join([f"## {title}", "", *table(columns, rows)]))
    parts += [part for part in (*_growth(results), *_crowds(results)) if part]
    return "\n\n".join([about(results), promises(results), *parts, *_absent(results)])


def summary(results: Results) -> str:
    """Write what the page shows: the targets, a table of cold starts and one of warm calls. DATA has everything."""
    starts = ("Cold", "Cold in Lambda's runtime client", "Warm")
    tables = (one for start in starts for one in _overview(results, start))
    parts = [*tables, *_crowds(results), *_absent(results)]
    folded = [f"<details>\n<summary>{FOLDED}</summary>", *parts, "</details>"]
    return "\n\n".join([about(results), promises(results), *folded])


def _overview(results: Results, start: str) -> Iterator[str]:
    """Write one table of all cases with this start: a row for each contender, a column for each call."""
    columns = {name: title for name, title in TABLES.items() if title.startswith(f"{start}: ")}
    cells: dict[str, dict[str, str]] = {}
    for case in CASES:
        if case.table in columns:
            for title, cpu, *_more, ratio in _rows(results, case, _first(case.table)):
                cells.setdefault(title, {})[case.table] = f"{cpu} ({ratio})" if ratio else cpu
    if cells:
        unit = "CPU µs" if start == "Warm" else "CPU ms"
        heads = (f"{start}: {unit} (x fastest peer)", *(title.partition(": ")[2] for title in columns.values()))
        rows = [[title, *(found.get(name, "") for name in columns)] for title, found in cells.items()]
        yield "\n".join(table(heads, rows))


def _first(name: str) -> Case:
    return next(case for case in CASES if case.table == name)


def promises(results: Results) -> str:
    """Write each target with its result."""
    rows = [
        [
            one.title,
            f"{one.most:.2f}",
            times(one.found) or "not measured",
            "met" if one.met else "missed" * bool(one.found),
        ]
        for one in targets.verdicts(results)
    ]
    return "\n".join(table(("our processor time, divided by theirs", "target: at most", "measured", "result"), rows))


def _growth(results: Results) -> Iterator[str]:
    """Write a table for each thing that grows: a row for each size, a column for each contender."""
    for name, (title, unit) in GROWTH.items():
        cases = [case for case in growing() if case.table == name]
        measured = [case for case in cases if results.get(name, OURS, case.size)]
        if not measured:
            continue
        rows = [[str(case.size), *_grown(results, case)] for case in measured]
        heads = [unit, *cases[0].entrants, "ours / fastest peer"]
        yield "\n".join([f"## {title}, CPU µs", "", *table(heads, rows)])


def _grown(results: Results, case: Case) -> list[str]:
    found = [results.get(case.name, title, case.size) for title in case.entrants]
    peer = results.fastest_peer(case.name, case.size)
    ratio = results.ratio(case.name, OURS, case.name, peer, case.size) if peer else None
    return [*(number(one.median) if one else "" for one in found), times(ratio)]


def _crowds(results: Results) -> Iterator[str]:
    if results.crowds:
        rows = [
            [f"{crowd['people']:.0f}", f"{crowd['conversations']:.1f}", number(crowd["p50"]), number(crowd["p90"])]
            for crowd in results.crowds
        ]
        heads = ("people at once", "conversations of two rounds per second", "round p50, ms", "round p90, ms")
        yield "\n".join(["## Conversations at once, in the local runtime", "", *table(heads, rows)])


def about(results: Results) -> str:
    """Describe the run: date, machine and method."""
    told = results.about
    busy = " The machine was busy: read the ratios, not the milliseconds." if told["load"] > BUSY else ""
    return (
        f"{told['date']}, {told['machine']}, {told['python']}; `{told['command']}`, seed {told['seed']},"
        f" {told['rounds']} rounds, load average {told['load']} at the start.{busy}"
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Write a table: its first column to the left, figures to the right."""
    lines = [columns, [":--", *["--:"] * (len(columns) - 1)], *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def number(value: float) -> str:
    """Write a figure with three significant digits."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}"


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
            ratio = times(results.ratio(case.name, title, first.name, peer)) if peer else ""
            yield [f"{title}{DOOR}" if case.door else title, *_cells(case, found), ratio]


def _cells(case: Case, found: Figure) -> list[str]:
    unit = 1000 if case.start == "cold" else 1
    spread = f"{number(decile(found.cpu, 1) / unit)}-{number(decile(found.cpu, 9) / unit)}"
    cells = [number(found.median / unit), spread]
    return [*cells, f"{found.memory:.0f}", str(found.modules or "")] if case.start == "cold" else cells


def _absent(results: Results) -> list[str]:
    lines = [f"- not measured: {what}: {why}" for what, why in results.absent.items()]
    notes = [f"- {entrant.title}: {entrant.note}" for entrant in ENTRANTS.values() if entrant.note]
    return ["\n".join([*notes, *lines])]
