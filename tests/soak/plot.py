"""Latency through the faults, as a picture."""

from __future__ import annotations

from collections import defaultdict
from statistics import quantiles
from typing import TYPE_CHECKING

from tests.soak.report import is_answered
from tests.support import pictures

if TYPE_CHECKING:
    from pathlib import Path

    from tests.soak.run import Seen

BUCKETS, FEWEST = 60, 10  # of the whole run, for the lines; answers that a bucket needs
LINES = {49: ("#1f6f8b", "median"), 98: ("#c9a227", "99%")}
ERROR = "#b5533c"


def draw(seen: Seen, file: Path) -> None:
    """Draw the duration of every response, the faults of KMS, and the kills.

    Raises:
        NoMatplotlib: it is not installed.

    """
    figure = pictures.figure(7.2, 4.2)
    axes = figure.add_subplot()
    first = min((one.sent for one in seen.deliveries), default=seen.began)
    points = [(one.sent - first, one.seconds * 1000, bool(one.result)) for one in seen.deliveries if is_answered(one)]
    for right, color, label in ((True, "#9fc5d1", "a result"), (False, ERROR, "an honest error")):
        chosen = [(at, took) for at, took, is_right in points if is_right == right]
        if chosen:
            xs, ys = zip(*chosen, strict=True)
            axes.scatter(xs, ys, s=3, color=color, linewidths=0, label=label, rasterized=True)
    for cut, (color, label) in LINES.items():
        axes.plot(*_line(points, cut), color=color, linewidth=1.5, label=label)
    for kind, height, color, label in (
        ("dies", 0.0, "#333333", "a process is killed"),
        ("kms", 0.025, ERROR, "KMS throttles, fails, is slow"),
    ):
        times = [line["t"] - first for line in seen.journal if line["kind"] == kind and line.get("weather") != "fine"]
        times += [at - first for at in seen.killed] if kind == "dies" else []
        axes.plot(times, [height + 0.012] * len(times), "|", color=color, ms=6, transform=axes.get_xaxis_transform())
        axes.plot([], [], "|", color=color, label=label)
    axes.set(yscale="log", xlabel="seconds", ylabel="milliseconds until the answer")
    pictures.plain(axes)
    figure.legend(frameon=False, fontsize=8, loc="outside upper center", ncols=3)
    pictures.save(figure, file)


def _line(points: list[tuple[float, float, bool]], cut: int) -> tuple[list[float], list[float]]:
    """Return a percentile of each stretch of time that has enough answers to say one."""
    width = max((at for at, _took, _right in points), default=0.0) / BUCKETS or 1.0
    buckets: dict[int, list[float]] = defaultdict(list)
    for at, took, _right in points:
        buckets[int(at / width)].append(took)
    found = [(number, quantiles(took, n=100)[cut]) for number, took in sorted(buckets.items()) if len(took) >= FEWEST]
    return [(number + 0.5) * width for number, _value in found], [value for _number, value in found]
