"""The table as a picture, for the pages about cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.plan import ALONE, CEILING, NAIVE, OURS, USUAL
from tests.support import pictures

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulation.plan import Results

LOOKS = {NAIVE: ("#b5533c", "s"), ALONE: ("#c9a227", "^"), OURS: ("#1f6f8b", "o")}


def draw(results: Results, file: Path) -> None:
    """Draw KMS calls per million rounds over the size of the fleet, both logarithmic.

    Raises:
        NoMatplotlib: it is not installed.

    """
    figure = pictures.figure(7.2, 4.2)
    axes = figure.add_subplot()
    for design, (color, marker) in LOOKS.items():
        points = sorted(
            (size, found.steady.calls_per_million)
            for (variation, of, size), found in results.items()
            if (variation, of) == (USUAL, design)
        )
        axes.plot(*zip(*points, strict=True), color=color, marker=marker, linewidth=2, label=design)
    axes.axhline(CEILING, color="#888888", linestyle="--", linewidth=1, label=f"ceiling of this design: {CEILING}")
    axes.set(xscale="log", yscale="log", ylim=(500, 6e6), xlabel="containers", ylabel="KMS calls per million rounds")
    pictures.plain(axes)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(0.0, 0.62))
    pictures.save(figure, file)
