"""Figures of Linux on the harness and its processes: memory, descriptors, zombies, remaining processes.

Every process of a run has the run's directory in its environment, so it is found even under another parent.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

PROC = Path("/proc")
EVERY_SECONDS = 0.5


class Sample(NamedTuple):
    """The harness at one moment: KB of memory, open descriptors, threads, children, and who of them is a zombie."""

    at: float
    requests: int
    rss: int
    descriptors: int
    threads: int
    children: int
    zombies: frozenset[int]


def sample(pid: int, requests: int) -> Sample | None:
    """Look at the harness; None if it is gone."""
    try:
        status = dict(line.split(":", 1) for line in _text(PROC / str(pid) / "status").splitlines() if ":" in line)
        descriptors = len(os.listdir(PROC / str(pid) / "fd"))  # noqa: PTH208 - counted, many times
        rss, threads = int(status["VmRSS"].split()[0]), int(status["Threads"])
    except (OSError, KeyError):
        return None
    children = _children(pid)
    zombies = frozenset(child for child, state in children.items() if state == "Z")
    return Sample(time.time(), requests, rss, descriptors, threads, len(children), zombies)


def left(run: Path) -> dict[int, str]:
    """Find every process of a run that is there: its number and its command."""
    mark, found = f"SOAK_RUN={run}\0".encode(), {}
    for entry in PROC.glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes() + b"\0":
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        except OSError:
            continue  # it went, or is another's
    return found


def kill(pid: int, run: Path) -> bool:
    """Kill a process of a run; False if it is gone, or the number is another's by now."""
    try:
        if f"SOAK_RUN={run}".encode() not in (PROC / str(pid) / "environ").read_bytes():
            return False
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return False
    return True


class Watch:
    """Takes samples from the start of its block to the end of it."""

    def __init__(self, pid: int, requests: Callable[[], int]) -> None:
        """Watch a harness; `requests` says how many it has had."""
        self.samples: list[Sample] = []
        self._pid, self._requests, self._stopped = pid, requests, threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        """Start the thread that takes samples."""
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop that thread."""
        self._stopped.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stopped.wait(EVERY_SECONDS):
            if found := sample(self._pid, self._requests()):
                self.samples.append(found)


class Killer:
    """Kills processes at random, between so and so many requests, whatever they are doing."""

    def __init__(self, chance: random.Random, gap: Callable[[random.Random], int], run: Path) -> None:
        """Draw when the first is due."""
        self.killed: list[float] = []
        self._chance, self._gap, self._run = chance, gap, run
        self._due = gap(chance)

    def look(self, requests: int, pids: Callable[[], list[int]]) -> None:
        """Kill one if it is time; called in one thread."""
        if requests < self._due:
            return
        self._due += self._gap(self._chance)
        alive = pids()
        self._chance.shuffle(alive)
        if next((pid for pid in alive if kill(pid, self._run)), None):
            self.killed.append(time.time())


def _children(pid: int) -> dict[int, str]:
    found = {}
    for entry in PROC.glob("[0-9]*"):
        try:
            state, parent = _text(entry / "stat").rpartition(")")[2].split()[:2]
        except (OSError, ValueError):
            continue
        if int(parent) == pid:
            found[int(entry.name)] = state
    return found


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")
