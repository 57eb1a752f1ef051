"""The cold figures as a picture: what a user waits for, and what each contender takes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.benchmarks.cases import CASES
from tests.benchmarks.entrants import ENTRANTS, OBSERVED, OURS
from tests.benchmarks.figures import decile
from tests.support import pictures

if TYPE_CHECKING:
    from pathlib import Path

    from tests.benchmarks.figures import Results

PANELS = {
    ("cold-add", "cold-add-door"): "cold: add(a, b), CPU ms",
    ("cold-list",): "cold: a list of 50 tools, CPU ms",
    ("cold-ask", "cold-ask-door"): "cold: first sealed round, CPU ms",
}
OUR_COLOR, PEER_COLOR, FLOOR_COLOR = "#1f6f8b", "#b5533c", "#999999"


def draw(results: Results, file: Path) -> None:
    """Draw a panel for each cold call: a bar for each contender and path, a whisker from p10 to p90.

    Raises:
        NoMatplotlib: it is not installed.

    """
    shown = {title: bars(results, names) for names, title in PANELS.items()}
    figure = pictures.figure(8.2, 1.6 + 0.24 * sum(map(len, shown.values())))
    panels = figure.subplots(len(shown), 1, squeeze=False, height_ratios=[max(1, len(rows)) for rows in shown.values()])
    for axes, (title, rows) in zip(panels[:, 0], shown.items(), strict=True):
        labels, middles, low, high, colors = zip(*rows, strict=True) if rows else ((), (), (), (), ())
        axes.barh(
            labels, middles, xerr=(low, high), color=colors, height=0.7, error_kw={"lw": 0.8, "ecolor": "#444444"}
        )
        axes.invert_yaxis()
        axes.set_title(title, loc="left", fontsize=9)
        axes.tick_params(labelsize=7.5)
        pictures.plain(axes, grid="x")
    pictures.save(figure, file)


def bars(results: Results, names: tuple[str, ...]) -> list[tuple[str, float, float, float, str]]:
    """List a panel's bars: label, median, how far p10 and p90 are from it (ms), colour; the shortest first."""
    rows = []
    for case in CASES:
        for title in case.entrants if case.name in names else ():
            if found := results.get(case.name, title):
                middle, low, high = (one / 1000 for one in (found.median, decile(found.cpu, 1), decile(found.cpu, 9)))
                ours, peer = title in {OURS, OBSERVED}, ENTRANTS[title].peer
                color = OUR_COLOR if ours else PEER_COLOR if peer else FLOOR_COLOR
                label = f"{title}, through /mcp" if case.door else title
                rows.append((label, middle, max(0.0, middle - low), max(0.0, high - middle), color))
    return sorted(rows, key=lambda row: row[1])
