"""Tasks by the hundred over workers that are killed, a table that fails, and clients that poll and answer twice.

The harness is the shipped one, in `--runtime` mode. Faults come from its table, from the soak's function, which
sometimes kills its process, and from a killer outside.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from mcp_functions.aws.errors import ClientError as NotNow
from mcp_functions.protocol.constants import WORKER_SUFFIX
from mcp_functions_harness import Harness, catalog
from mcp_functions_harness.client.tasks import ENDED, Refused, TaskClient
from mcp_functions_harness.doubles import dynamodb
from tests.soak import watch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PROJECT = Path(__file__).parent / "project"
FOLDER = "job"
PATIENCE = 240.0  # seconds for one task; what takes longer has no end
LEAST, MOST = 0.1, 0.4  # seconds between polls: a client in a hurry
TWICE, CANCELLED, THROTTLED, LOST = 0.25, 0.1, 0.04, 0.02
GAP, LATELY = (0.5, 3.0), 12  # seconds between kills from outside; lines of the journal that tell who is at work
TROUBLE = {-32603}  # codes after which a client asks again


@dataclass
class Heard:
    """The responses that a client got about one task.

    Attributes:
        nonce: in its arguments, its question and its result, and in those of no other.
        parts: steps before the question.
        size: the answer.
        cancelled: whether the client cancelled it.
        ends: every end that a poll returned; all must be the same.
        asked: the wire keys of its questions.
        wrong: responses that no client should get.
        polls: their number.

    """

    nonce: str
    parts: int
    size: int
    cancelled: bool
    ends: list[dict[str, Any]] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    polls: int = 0


@dataclass
class Seen:
    """The records of a run: clients, the function's journal, kills from outside, faults of the table, seconds."""

    heard: list[Heard]
    journal: list[dict[str, Any]] = field(default_factory=list)
    killed: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    workers: int = 0


class Weather:
    """moto's table, which sometimes throttles, and sometimes stores an item and then returns an error."""

    def __init__(self, call: Callable[..., Any], chance: random.Random, faults: Counter[str]) -> None:
        self._call, self._chance, self._faults = call, chance, faults

    def __call__(self, operation: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        drawn = self._chance.random()
        if drawn < THROTTLED:
            self._faults["throttled"] += 1
            code = "ThrottlingException"
            raise NotNow(code)
        answer: Mapping[str, Any] = self._call(operation, request)
        if drawn < THROTTLED + LOST and operation == "PutItem":
            self._faults["done and not said"] += 1
            code = "InternalServerError"
            raise NotNow(code, 500)
        return answer


def run(tasks: int, *, seed: int, directory: Path, clients: int = 8, kills: float = 0.02) -> Seen:
    """Run a number of tasks.

    Args:
        tasks: how many.
        seed: of the actions of clients, table and killer; the processes' order is not fixed.
        directory: empty, for this run.
        clients: tasks at once.
        kills: the probability that a worker dies at each place where it may.

    """
    chance = random.Random(seed)  # noqa: S311 - chance that repeats is the point of it
    planned = [_planned(number, chance) for number in range(tasks)]
    seen, began = Seen(planned), time.monotonic()
    project = directory / "project"
    shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("__pycache__"))
    functions = project / "functions"
    catalog.write(functions, catalog.generate(functions))
    variables = {"SOAK_RUN": str(directory), "SOAK_KILLS": str(kills), "MCP_MAX_OPEN_TASKS": str(tasks + 1)}

    real = dynamodb.Moto

    def weather(table: dynamodb.TableParameters) -> Weather:
        return Weather(real(table), random.Random(seed + 1), seen.faults)  # noqa: S311 - as above

    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, variables))
        stack.enter_context(mock.patch.object(dynamodb, "Moto", weather))
        said = (directory / "log").open("a")
        stack.enter_context(said)
        harness = stack.enter_context(
            Harness(
                functions,
                state_dir=directory / "state",
                runtime=True,
                on_log=lambda folder, line: print(folder, line, file=said, flush=True),
            )
        )
        stop = threading.Event()
        killer = threading.Thread(target=_kill, args=(directory, seen, random.Random(seed + 2), stop))  # noqa: S311
        killer.start()
        try:
            with ThreadPoolExecutor(clients) as pool:
                list(pool.map(lambda one: _Client(harness.url, one, random.Random(one.nonce)).see(), planned))  # noqa: S311
        finally:
            stop.set()
            killer.join()
        seen.workers = sum(one.folder == f"{FOLDER}{WORKER_SUFFIX}" for one in harness.invocations)
    seen.journal = _journal(directory)
    seen.seconds = time.monotonic() - began
    return seen


def _planned(number: int, chance: random.Random) -> Heard:
    nonce = f"n{number:04}-{chance.getrandbits(32):08x}"
    return Heard(nonce, chance.randint(2, 6), chance.randrange(1000), chance.random() < CANCELLED)


def _kill(directory: Path, seen: Seen, chance: random.Random, stop: threading.Event) -> None:
    """Kill one of the workers that wrote something lately, whatever it is doing by now."""
    while not stop.wait(chance.uniform(*GAP)):
        lately = sorted({line["pid"] for line in _journal(directory)[-LATELY:]})
        seen.killed += bool(lately) and watch.kill(chance.choice(lately), directory)


def _journal(directory: Path) -> list[dict[str, Any]]:
    file = directory / "journal"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


class _Client:
    """One client with one task: it is in a hurry, repeats itself, and tries again after trouble."""

    def __init__(self, url: str, heard: Heard, chance: random.Random) -> None:
        self._client, self._heard, self._chance = TaskClient(url, timeout=60), heard, chance
        self._until = time.monotonic() + PATIENCE

    def see(self) -> None:
        arguments = {"nonce": self._heard.nonce, "parts": self._heard.parts}
        task_id = str(self._insisting(lambda: self._client.call(FOLDER, arguments))["taskId"])
        if self._heard.cancelled:
            time.sleep(self._chance.random() * 2)
            self._insisting(lambda: self._client.cancel(task_id))
        while time.monotonic() < self._until:
            task = self._polled(task_id)
            if task["status"] in ENDED:
                self._heard.ends += [self._insisting(lambda: self._client.get(task_id)) for _ in range(2)]
                return
            if task["status"] == "input_required":
                self._answer(task_id, task["inputRequests"])
            time.sleep(self._chance.uniform(LEAST, MOST))
        self._heard.wrong.append("no end")

    def _polled(self, task_id: str) -> dict[str, Any]:
        """Poll; sometimes twice at once."""
        self._heard.polls += 1
        twin = threading.Thread(target=self._insisting, args=(lambda: self._client.get(task_id),))
        twice = self._chance.random() < TWICE
        if twice:
            twin.start()
        task: dict[str, Any] = self._insisting(lambda: self._client.get(task_id))
        if twice:
            twin.join()
        if task["status"] in ENDED:
            self._heard.ends.append(task)
        return task

    def _answer(self, task_id: str, requests: Mapping[str, Any]) -> None:
        for key, request in requests.items():
            self._heard.asked.add(key)
            if not request["params"]["message"].startswith(f"{self._heard.nonce}: "):
                self._heard.wrong.append("somebody else's question")
        size = {"action": "accept", "content": {"size": self._heard.size}}
        answers = {**dict.fromkeys(requests, size), "unknown": size}
        for _ in range(2 if self._chance.random() < TWICE else 1):
            self._insisting(lambda: self._client.update(task_id, answers))

    def _insisting(self, ask: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever was asked for
        """Ask again after trouble: 500, 503, 504, or a connection that ended."""
        while True:
            try:
                return ask()
            except Refused as refused:
                if refused.code not in TROUBLE or time.monotonic() > self._until:
                    raise
            except (KeyError, ValueError, OSError):  # API Gateway's own words, when the endpoint's process died
                if time.monotonic() > self._until:
                    raise
            time.sleep(LEAST)
