"""A run: the harness in another process, hundreds of conversations, the threads that hold them, and the records."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from tests.soak import plan, watch
from tests.soak.talk import Talk
from tests.soak.wires import Door

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.soak.watch import Sample
    from tests.soak.wires import Delivery

ROOT = Path(__file__).parents[2]
OPEN = 300  # conversations at once: they wait for their people
STOP_SECONDS = 30.0  # in which the harness ends


@dataclass
class Seen:
    """The records of a run.

    Attributes:
        planned: the conversations.
        deliveries: every request, with its answer.
        finals: the request that ended each conversation, by its number.
        journal: the lines of functions, KMS and harness, in order.
        samples: of the harness.
        idle: the harness after the last conversation, before it ended.
        killed: times at which a process was killed from outside, unix seconds.
        left: processes that remained after the harness had ended.
        status: of the harness's process.
        said: its output on stderr.
        workers: number of client threads.
        began: unix seconds.
        seconds: its duration.

    """

    planned: list[plan.Planned]
    deliveries: list[Delivery] = field(default_factory=list)
    finals: dict[int, Delivery] = field(default_factory=dict)
    journal: list[dict[str, Any]] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    idle: Sample | None = None
    killed: list[float] = field(default_factory=list)
    left: dict[int, str] = field(default_factory=dict)
    status: int | None = None
    said: str = ""
    workers: int = 0
    began: float = 0.0
    seconds: float = 0.0


class Conversations:
    """All conversations of a run. A free thread takes an open one and sends its next request."""

    def __init__(self, planned: list[plan.Planned], seed: int, door: Door) -> None:
        """Open the first ones."""
        self.ended: list[Talk] = []
        self.requests = 0
        self._talks = iter([Talk(one, seed, door) for one in planned])
        self._lock, self._chance = threading.Lock(), random.Random(seed)  # noqa: S311 - who comes next
        self._open: list[Talk] = []

    def take(self) -> Talk | None:
        """Take an open conversation; None if all have ended or other threads hold them."""
        with self._lock:
            while len(self._open) < OPEN and (talk := next(self._talks, None)):
                self._open.append(talk)
            return self._open.pop(self._chance.randrange(len(self._open))) if self._open else None

    def give_back(self, talk: Talk, requests: int) -> None:
        """Put it back, to be taken further later, or among those that have ended."""
        with self._lock:
            self.requests += requests
            (self.ended if talk.over else self._open).append(talk)


def run(
    planned: list[plan.Planned],
    *,
    seed: int,
    directory: Path,
    workers: int,
    progress: Callable[[int, int, float], None] = lambda *_: None,
) -> Seen:
    """Run conversations, all faults on, and then stop the harness with requests in flight.

    Args:
        planned: the conversations, by their numbers.
        seed: of what befalls them and everybody.
        directory: empty, for this run.
        workers: requests at once.
        progress: called now and then with conversations ended, requests and seconds.

    """
    seen = Seen(planned, workers=workers)
    seen.began = time.time()
    with ExitStack() as stack:
        errors = stack.enter_context((directory / "stderr").open("w"))
        host = stack.enter_context(_host(directory, seed, errors))
        stack.callback(_end, host, directory, seen)
        assert host.stdout
        told = json.loads(host.stdout.readline())
        door = Door(told["url"], told["tokens"])
        work = Conversations(seen.planned, seed, door)
        killer = watch.Killer(plan.outside(seed), plan.gap, directory)
        with watch.Watch(host.pid, lambda: work.requests) as watching:
            threads = [threading.Thread(target=_work, args=(work, door)) for _ in range(workers)]
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads):
                threads[0].join(0.1)
                killer.look(work.requests, lambda: _pids(directory))
                progress(len(work.ended), work.requests, time.time() - seen.began)
        seen.seconds = time.time() - seen.began
        seen.samples, seen.killed = watching.samples, killer.killed
        seen.idle = watch.sample(host.pid, work.requests)
        seen.finals = {talk.planned.number: talk.final for talk in work.ended if talk.final}
        seen.deliveries = [delivery for talk in work.ended for delivery in talk.deliveries]
        _interrupt(host, work, door)
    seen.journal = _lines(directory / "journal")
    return seen


def _host(directory: Path, seed: int, errors: TextIO) -> subprocess.Popen[str]:
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", "-m", "tests.soak.host", str(directory), str(seed)]
    return subprocess.Popen(  # noqa: S603 - this interpreter, our own module
        command, cwd=ROOT, env=environ, text=True, stdout=subprocess.PIPE, stderr=errors
    )


def _work(work: Conversations, door: Door) -> None:
    while talk := work.take():
        before = len(talk.deliveries)
        talk.act()
        if talk.over and talk.final and talk.final.result and talk.planned.number % 5 == 0:
            talk.again()
        work.give_back(talk, len(talk.deliveries) - before)
    door.close()


def _interrupt(host: subprocess.Popen[str], work: Conversations, door: Door) -> None:
    """Stop the harness while some ask: who gets no answer hears that the connection ended."""
    asking = [threading.Thread(target=_last, args=(talk, door)) for talk in work.ended[:4] if talk.final]
    for thread in asking:
        thread.start()
    host.send_signal(signal.SIGINT)
    for thread in asking:
        thread.join()


def _last(talk: Talk, door: Door) -> None:
    talk.again()
    door.close()


def _end(host: subprocess.Popen[str], directory: Path, seen: Seen) -> None:
    try:
        if host.poll() is None:
            host.send_signal(signal.SIGINT)
        seen.status = host.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        host.kill()
    seen.left = watch.left(directory)
    for pid in seen.left:
        watch.kill(pid, directory)
    seen.said = (directory / "stderr").read_text(encoding="utf-8")


def _pids(directory: Path) -> list[int]:
    """List the functions' processes that are there."""
    return sorted(pid for pid, command in watch.left(directory).items() if "awslambdaric" in command)


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
