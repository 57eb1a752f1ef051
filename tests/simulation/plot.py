"""The table as a picture, for the pages about cost. matplotlib is loaded here alone, when a picture is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.plan import ALONE, CEILING, NAIVE, OURS, USUAL

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulation.plan import Results

MISSING = "matplotlib is not installed, so no picture is drawn: pip install 'mcp-functions[dev]'"
LOOKS = {NAIVE: ("#b5533c", "s"), ALONE: ("#c9a227", "^"), OURS: ("#1f6f8b", "o")}


class NoMatplotlib(Exception):
    """The picture cannot be drawn; the text says what to install."""


def draw(results: Results, file: Path) -> None:
    """Draw KMS calls per million rounds over the size of the fleet, both logarithmic.

    Raises:
        NoMatplotlib: it is not installed.

    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - a second that only pictures need
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ModuleNotFoundError:
        raise NoMatplotlib(MISSING) from None
    figure = Figure(figsize=(7.2, 4.2), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
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
    axes.grid(which="major", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(b=True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(0.0, 0.62))
    figure.savefig(file, metadata={"Software": None})  # so that the same numbers make the same file
