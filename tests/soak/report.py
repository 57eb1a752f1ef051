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
        ("… with a correct error", _number(len(seen.finals) - results)),
        ("breaches (a wrong result, a repeated step, a leftover process, …)", _number(breaches)),
        ("requests, in seconds", f"{_number(len(seen.deliveries))}, in {_number(seen.seconds)}"),
        ("latency in milliseconds: median, 95%, 99%, maximum", _times(answered)),
        ("… of responses with a result", _times(one for one in answered if one.result)),
        ("memory of the harness, second and last quarter", " and ".join(f"{value:.1f} MB" for value in memory)),
        ("its open descriptors, second and last quarter", " and ".join(f"{value:.0f}" for value in descriptors)),
        ("maximum number of its processes at once", _number(max((one.children for one in seen.samples), default=0))),
        ("processes left at the end", _number(len(seen.left))),
    ]


def _befell(seen: Seen) -> str:
    """Write the faults and the responses in one sentence: how many of each."""
    heard = seen.deliveries
    what, weather = Counter(one.what for one in heard), Counter(one["weather"] for one in _kind(seen, "kms"))
    born, died = _kind(seen, "born"), _kind(seen, "dies")
    far = sum(abs(float(str(one["skew"]))) > plan.TOLERATED for one in born)
    status = Counter("a lost one" if one.status is None else _named(one) for one in heard)
    rows = [
        ("processes started", _number(len(born))),
        ("killed from outside, busy or idle", _number(len(seen.killed))),
        ("killed from inside, at a chosen point", _number(len(died))),
        ("clocks beyond the tolerance", _number(far)),
        *((f"KMS calls, {name}", _number(weather[name])) for name in plan.WEATHER),
        ("requests sent twice at once", _number(what["duplicate"] // 2)),
        ("requests repeated later, or after the end", _number(what["late"] + what["again"])),
        ("requests whose response was lost", _number(what["lost"])),
        ("requests with an earlier state", _number(what["rewound"])),
        ("requests with another person's state", _number(what["stranger"])),
        *((f"answered {name}", _number(times)) for name, times in sorted(status.items()) if name != "a lost one"),
    ]
    return "; ".join(f"{name}: {times}" for name, times in rows) + "."


def _named(delivery: Delivery) -> str:
    return f"{delivery.status} {delivery.error.get('message', '')}".strip() if delivery.error else str(delivery.status)


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
    return f"{value:,.0f}".replace(",", " ")
