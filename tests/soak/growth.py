"""Memory, descriptors and processes must not grow, and no process may remain at the end.

After a warm-up, the median of a quarter of the samples is compared with that of the last quarter. Ten thousand
conversations show a leak of one percent of a request's traffic; a short run shows only leaks of whole objects per
request.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from tests.soak.breach import Breach

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.soak.run import Seen
    from tests.soak.watch import Sample

FEWEST = 12  # samples that say anything
MORE_MEMORY, KB_A_REQUEST, NOISE_KB = 0.05, 1.0, 6 * 1024
MORE_DESCRIPTORS, OF_A_PROCESS = 24, 6  # beyond what each process has: two ends of a pipe, its API, its connection
LINGERS = 10.0  # seconds
CROWD = 6  # processes for each simultaneous request: two functions each, duplicates, and processes that are just ending


def breaches(seen: Seen) -> Iterator[Breach]:
    """Report growth, and processes that remain."""
    for pid, command in seen.left.items():
        yield Breach("a process was left", None, f"{pid} {command}")
    if seen.status != 0:
        yield Breach("the harness did not end well", None, f"status {seen.status}")
    for line in seen.said.splitlines():
        yield Breach("the harness complained", None, line)
    for pid in _lingering(seen.samples):
        yield Breach("a zombie", None, str(pid))
    most = max((one.children for one in seen.samples), default=0)
    if most > CROWD * seen.workers + 1:
        yield Breach("too many processes", None, f"{most} for {seen.workers} requests at once")
    if len(seen.samples) >= FEWEST:
        yield from _grown(seen.samples)


def _lingering(samples: Sequence[Sample]) -> set[int]:
    """Find who was a zombie for longer than it takes to fetch one, on a machine that has much else to do."""
    since: dict[int, float] = {}
    found: set[int] = set()
    for one in samples:
        since = {pid: since.get(pid, one.at) for pid in one.zombies}
        found |= {pid for pid, at in since.items() if one.at - at > LINGERS}
    return found


def quarters(samples: Sequence[Sample]) -> tuple[Sequence[Sample], Sequence[Sample]]:
    """Return the second quarter of a run, and the last one."""
    size = len(samples) // 4
    return samples[size : 2 * size], samples[-size:]


def _grown(samples: Sequence[Sample]) -> Iterator[Breach]:
    early, late = quarters(samples)
    requests = median(one.requests for one in late) - median(one.requests for one in early)
    before, after = median(one.rss for one in early), median(one.rss for one in late)
    if after - before > NOISE_KB + min(MORE_MEMORY * before, KB_A_REQUEST * requests):
        yield Breach("memory grows", None, f"{before:.0f} KB, {after:.0f} KB after {requests:.0f} requests more")
    opened, still = (
        median(one.descriptors - OF_A_PROCESS * one.children for one in quarter) for quarter in (early, late)
    )
    if still - opened > MORE_DESCRIPTORS:
        yield Breach("descriptors grow", None, f"{opened:.0f}, then {still:.0f}")
