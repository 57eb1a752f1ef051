"""Helpers that all pictures of the pages share. Only this module imports matplotlib, when a picture is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MISSING = "matplotlib is not installed, so no picture is drawn: pip install 'mcp-functions[dev]'"


class NoMatplotlib(Exception):
    """The picture cannot be drawn; the text says what to install."""


def figure(width: float, height: float) -> Figure:
    """Make an empty picture, inches wide and high.

    Raises:
        NoMatplotlib: it is not installed.

    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise NoMatplotlib(MISSING) from None
    made = Figure(figsize=(width, height), dpi=110, layout="constrained")
    FigureCanvasAgg(made)
    return made


def plain(axes: Axes, *, grid: Literal["both", "x", "y"] = "both") -> None:
    """Take away what says nothing: a frame on two sides, and lines in front of what was measured."""
    axes.grid(which="major", axis=grid, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(b=True)
    axes.spines[["top", "right"]].set_visible(False)


def save(drawn: Figure, file: Path) -> None:
    """Write the picture, so that the same numbers make the same file."""
    drawn.savefig(file, metadata={"Software": None})
