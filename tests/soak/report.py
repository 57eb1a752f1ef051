"""A run as figures: what `make soak` prints, and what it writes between its marks in docs/performance.md."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections import Counter
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING

from tests.soak import growth, plan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.soak.run import Seen
    from tests.soak.wires import Delivery

DOCS = Path(__file__).parents[2] / "docs"
PAGE, PICTURE = DOCS / "performance.md", DOCS / "soak.png"
BEGIN, END = "<!-- written by `make soak PAGE=1`: begin -->", "<!-- end -->"


def markdown(seen: Seen, breaches: int, *, seed: int) -> str:
    """Write the figures, under where and how they were got."""
    return "\n".join([_where(seen, seed), "", *_table("result", _outcomes(seen, breaches)), "", _befell(seen)])


def written(page: str, figures: str) -> str:
    """Put the figures between the marks of a page."""
    before, _begin, rest = page.partition(BEGIN)
    _old, _end, after = rest.partition(END)
    return f"{before}{BEGIN}\n{figures}\n{END}{after}"


def is_answered(delivery: Delivery) -> bool:
    """Return whether a client waited for a response and got it."""
    return delivery.status is not None


def _where(seen: Seen, seed: int) -> str:
    day = time.strftime("%Y-%m-%d", time.gmtime(seen.began))
    busy = f"load average {os.getloadavg()[0]:.1f} at the end"
    machine = f"{os.cpu_count()} processors ({_processor()}), {platform.system()} {platform.machine()}, {busy}"
    python = ".".join(map(str, sys.version_info[:3]))
    command = f"make soak CONVERSATIONS={len(seen.planned)} SEED={seed} WORKERS={seen.workers}"
    return f"`{command}` on {day}, Python {python}, {machine}."


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _outcomes(seen: Seen, breaches: int) -> list[tuple[str, str]]:
    results = sum(bool(final.result) for final in seen.finals.values())
    answered = [one for one in seen.deliveries if is_answered(one)]
    early, late = growth.quarters(seen.samples) if len(seen.samples) >= growth.FEWEST else (seen.samples, seen.samples)
    memory = [median(one.rss for one in quarter) / 1024 for quarter in (early, late)]
    descriptors = [median(one.descriptors for one in quarter) for quarter in (early, late)]
    return [
        ("conversations", _number(len(seen.planned))),
        ("… with the correct result", _number(results)),
        ("breaches", _number(breaches)),
        ("requests, in seconds", f"{_number(len(seen.deliveries))}, in {_number(seen.seconds)}"),
        ("latency in ms: median, 95%, 99%, maximum", _times(answered)),
        ("MB of the harness, second and last quarter", ", ".join(f"{value:.1f}" for value in memory)),
        ("its descriptors, second and last quarter", ", ".join(f"{value:.0f}" for value in descriptors)),
        ("its processes, at most", _number(max((one.children for one in seen.samples), default=0))),
        ("processes left at the end", _number(len(seen.left))),
    ]


def _befell(seen: Seen) -> str:
    """Write in one sentence how many of each fault and of each response there were."""
    heard = seen.deliveries
    what, weather = Counter(one.what for one in heard), Counter(one["weather"] for one in _kind(seen, "kms"))
    born, died = _kind(seen, "born"), _kind(seen, "dies")
    far = sum(abs(float(str(one["skew"]))) > plan.TOLERATED for one in born)
    status = Counter(one.status for one in heard if one.status is not None)
    return (
        f"Processes: {_number(len(born))} started, {_number(len(seen.killed))} killed from outside,"
        f" {_number(len(died))} at a chosen point, {_number(far)} with a clock beyond the tolerance. KMS calls:"
        f" {', '.join(f'{_number(weather[name])} {name}' for name in plan.WEATHER)}. Requests:"
        f" {_number(what['duplicate'] // 2)} sent twice at once, {_number(what['late'] + what['again'])} repeated"
        f" later, {_number(what['lost'])} with a lost response, {_number(what['rewound'])} with an earlier state,"
        f" {_number(what['stranger'])} with another person's. Responses:"
        f" {', '.join(f'{_number(times)} x {number}' for number, times in sorted(status.items()))}."
    )


def _kind(seen: Seen, kind: str) -> list[dict[str, object]]:
    return [line for line in seen.journal if line["kind"] == kind]


def _times(deliveries: Iterable[Delivery]) -> str:
    taken = [one.seconds * 1000 for one in deliveries]
    if len(taken) < 2:
        return "-"
    cuts = quantiles(taken, n=100)
    return ", ".join(_number(value) for value in (cuts[49], cuts[94], cuts[98], max(taken)))


def _table(head: str, rows: Iterable[tuple[str, str]]) -> list[str]:
    return [f"| {head} | |", "| :-- | --: |", *(f"| {name} | {value} |" for name, value in rows)]


def _number(value: float) -> str:
    return f"{value:,.0f}"
