"""Measures: every item of a run once a round, the rounds shuffled, each answer checked before the first is timed.

An item is a case and a contender. Cold, it is a new process, from its spawn to its answer; warm, a batch of calls in a
process that stays. Nothing is dropped: medians and deciles are of all samples.
"""

from __future__ import annotations

import json
import marshal
import os
import random
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import boto3

from mcp_functions import catalog, tool
from mcp_functions.local.environment import CREDENTIALS, endpoints
from tests.benchmarks import dialects, services
from tests.benchmarks.contenders import ours
from tests.benchmarks.entrants import SDK_KMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tests.benchmarks.cases import Case
    from tests.benchmarks.dialects import Event
    from tests.benchmarks.entrants import Entrant
    from tests.benchmarks.environments import Trees
    from tests.benchmarks.services import Kms

BATCH_SECONDS = 0.02  # of calls in one sample of a warm item
MAX_TOOLS = "1000"  # of ours on a page: peers have no pages
BIGGEST = str(4 * 1024 * 1024)  # characters of a state: "the cap raised for it"
BEHIND = ("add", "ask")  # functions behind our endpoint
COLD, NOTHING, WARM = (f"import drive; drive.{name}()" for name in ("cold", "nothing", "warm"))


class Item(NamedTuple):
    """One case, one contender."""

    case: Case
    entrant: Entrant


class Sample(NamedTuple):
    """What one round of one item took: nanoseconds for each call; memory in KB."""

    cpu: float
    wall: float
    memory: int = 0
    modules: int = 0


class Answered(NamedTuple):
    """A process that has answered: its response, how long that was after its spawn, and what it took."""

    response: dict[str, Any] | None
    wall: int
    cpu: int
    memory: int
    modules: int


class Lab:
    """What all contenders have around them: trees, KMS, Invoke, an environment without anything of this machine's."""

    def __init__(self, trees: Trees, kms: Kms, folder: Path) -> None:
        """Take what there is; `folder` holds our endpoint's catalogs, and whatever processes leave."""
        self.trees, self.folder, self._kms = trees, folder, kms
        self.invoke_url = "http://127.0.0.1:9"  # nobody: only our endpoint invokes
        self._wrapped, self._key = _wrapped(kms)

    def environ(self, entrant: Entrant) -> dict[str, str]:
        """Write the environment of a contender's process."""
        trees = [path for name in entrant.trees for path in self._trees(name)]
        around = {**CREDENTIALS, **endpoints(kms=self._kms.url, invoke=self.invoke_url)}
        own = {
            "MCP_STACK": services.STACK,
            "MCP_STAGE": "bench",
            "MCP_AUTH_MODE": "none",
            "MCP_KMS_KEYS": self._kms.arn,
        }
        own |= {"MCP_PAGE_SIZE": MAX_TOOLS, "MCP_MAX_STATE_CHARS": BIGGEST, "BENCH_CATALOGS": str(self.folder)}
        own |= {"BENCH_WRAPPED": self._wrapped} if entrant.title == SDK_KMS else {}
        plain = {"PATH": os.defpath, "PYTHONPATH": self.trees.path(trees), "PYTHONDONTWRITEBYTECODE": "1"}
        lambdas = {"AWS_LAMBDA_FUNCTION_NAME": f"{services.STACK}-bench", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512"}
        every = plain | lambdas | around | own | {"BENCH_KEY": self._kms.arn} | dict(entrant.environ)
        return {name: value for name, value in every.items() if value is not None}

    def _trees(self, name: str) -> tuple[Path, ...]:
        return self.trees.layers if name == "layers" else (self.trees.peer(name),)

    def cold(self, item: Item, function: str, event: Event | None) -> Answered:
        """Run a new process until it has answered one event, and read what it took.

        Raises:
            WrongAnswer: it did not answer.

        """
        files = {name: self.folder / f"{name}.{random.getrandbits(64):x}" for name in ("event", "reply", "stderr")}
        files["event"].write_bytes(marshal.dumps((event, f"{services.STACK}-{function}")))
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, str(files["event"]), os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, str(files["stderr"]), flags, 0o600),
            (os.POSIX_SPAWN_OPEN, 3, str(files["reply"]), flags, 0o600),
        ]
        try:
            began = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            pid = os.posix_spawn(
                self.trees.python, self.command(item, function, COLD), self.environ(item.entrant), file_actions=actions
            )
            _pid, status, usage = os.wait4(pid, 0)
            if status:
                raise dialects.WrongAnswer(files["stderr"].read_text(errors="replace")[-600:])
            response, ended, _cpu, memory, modules = marshal.loads(files["reply"].read_bytes())
            return Answered(response, ended - began, int((usage.ru_utime + usage.ru_stime) * 1e9), memory, modules)
        finally:
            for file in files.values():
                file.unlink(missing_ok=True)

    def command(self, item: Item, function: str, program: str) -> list[str]:
        """Write the command line of a contender's process."""
        python, entrant = str(self.trees.python), item.entrant
        if entrant.module in {"", "json"}:
            return [python, "-c", NOTHING, entrant.module]
        argument = "" if item.case.argument is None else str(item.case.argument)
        return [python, "-c", program, entrant.module, function, argument if function == item.case.function else ""]


class Process:
    """A contender that stays, and answers events one after the other."""

    def __init__(self, lab: Lab, item: Item, function: str) -> None:
        """Start it."""
        self._name = f"{services.STACK}-{function}"
        self._log = (lab.folder / f"log.{random.getrandbits(64):x}").open("w+b")
        reading, writing = os.pipe()
        program = f"import os; os.dup2({writing}, 3); {WARM}"
        self._running = subprocess.Popen(
            lab.command(item, function, program), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self._log,
            env=lab.environ(item.entrant), pass_fds=[writing],
        )  # fmt: skip
        os.close(writing)
        self._replies = os.fdopen(reading, "rb")

    def once(self, event: Event) -> dict[str, Any]:
        """Answer one event."""
        response: dict[str, Any] = self._do("once", event, self._name)
        return response

    def timed(self, event: Event, times: int) -> tuple[int, int]:
        """Answer an event so many times, and say how many nanoseconds that took: wall, processor."""
        wall, cpu = self._do("time", event, self._name, times)
        return wall, cpu

    def cpu(self) -> int:
        """Say how many nanoseconds of processor time it has used."""
        return int(self._do("cpu"))

    def _do(self, *command: Any) -> Any:  # noqa: ANN401 - what marshal reads
        assert self._running.stdin
        try:
            marshal.dump(command, self._running.stdin)
            self._running.stdin.flush()
            return marshal.load(self._replies)
        except (EOFError, OSError):
            self._log.seek(0)
            raise dialects.WrongAnswer(self._log.read().decode(errors="replace")[-600:]) from None

    def close(self) -> None:
        """End it."""
        self._running.communicate()
        self._replies.close()
        self._log.close()


@contextmanager
def lab(trees: Trees) -> Iterator[Lab]:
    """Start what is around contenders."""
    with tempfile.TemporaryDirectory() as folder, services.kms() as kms:
        made = Lab(trees, kms, Path(folder))
        write_catalogs(Path(folder))
        yield made


def write_catalogs(folder: Path, sizes: Sequence[int] = (1, 10, 50, 200, 500)) -> None:
    """Write what our endpoint offers: 0.json, with the functions behind it; and N.json, of so many tools."""
    functions = [catalog.of(getattr(ours, name)().handlers, name) for name in BEHIND]
    (folder / "0.json").write_text(json.dumps(catalog.merge(functions)), encoding="utf-8")

    def many(text: str, count: int) -> str:
        """Do one of many things to a text, so many times."""
        return text * count

    for size in sizes:
        tools = [catalog.of([tool(name=f"tool_{number:03}")(many)], "many") for number in range(size)]
        (folder / f"{size}.json").write_text(json.dumps(catalog.merge(tools)), encoding="utf-8")


def conversation(item: Item, once: Callable[[Event], dict[str, Any]]) -> Event:
    """Hold the rounds before the timed one, and return its event; it has been answered, and rightly.

    Raises:
        WrongAnswer: one of the answers is wrong.

    """
    case, dialect = item.case, item.entrant.dialect
    method, params = ("tools/list", {}) if case.params is None else ("tools/call", dict(case.params))
    for _ in range(case.before):
        asked = dialects.result(once(dialects.request(dialect, method, params)))
        params = dialects.answered(params, asked)
    event = dialects.request(dialect, method, params)
    case.check(dialects.result(once(event)))
    return event


def cold(lab: Lab, items: Iterable[Item], rounds: int, chance: random.Random) -> dict[Item, list[Sample] | str]:
    """Measure cold items, all of them interleaved.

    Args:
        lab: around them.
        items: cold ones.
        rounds: samples of each.
        chance: shuffles each round.

    Returns:
        The samples of each item, one a round; or why it has none.

    """
    found: dict[Item, list[Sample] | str] = {}
    for item in items:
        try:
            _cold(lab, item)  # also warms the page cache
            found[item] = []
        except dialects.WrongAnswer as wrong:
            found[item] = str(wrong)
    return _interleaved(found, {item: lambda item=item: _cold(lab, item) for item in found}, rounds, chance)  # type: ignore[misc]


def _cold(lab: Lab, item: Item) -> Sample:
    parts: list[Answered] = []

    def answer(event: Event, function: str) -> dict[str, Any]:
        parts.append(lab.cold(item, function, event))
        return parts[-1].response or {}

    if item.entrant.module in {"", "json"}:
        parts.append(lab.cold(item, "", None))
    elif item.case.door:
        with services.invoke(
            BEHIND, lambda folder, event: json.dumps(answer(json.loads(event), folder)).encode()
        ) as url:
            lab.invoke_url = url
            conversation(item, lambda event: answer(event, "door"))
    else:
        conversation(item, lambda event: answer(event, item.case.function))
    last = parts[-1]
    return Sample(
        sum(part.cpu for part in parts),
        last.wall,
        max(part.memory for part in parts),
        max(part.modules for part in parts),
    )


def warm(lab: Lab, items: Iterable[Item], rounds: int, chance: random.Random) -> dict[Item, list[Sample] | str]:
    """Measure warm items that are compared with each other, all of them interleaved (see `cold`)."""
    found: dict[Item, list[Sample] | str] = {}
    ready: dict[Item, Callable[[], Sample]] = {}
    with ExitStack() as stack:
        for item in items:
            try:
                ready[item], found[item] = _ready(lab, item, stack), []
            except dialects.WrongAnswer as wrong:
                found[item] = str(wrong)
        return _interleaved(found, ready, rounds, chance)


def _ready(lab: Lab, item: Item, stack: ExitStack) -> Callable[[], Sample]:
    """Start a contender, hold the conversation up to what is timed, and choose how many calls make a sample."""
    behind = _started(lab, item, item.case.function, stack)
    front = behind
    if item.case.door:
        lab.invoke_url = stack.enter_context(
            services.invoke(BEHIND, lambda _folder, event: json.dumps(behind.once(json.loads(event))).encode())
        )
        front = _started(lab, item, "door", stack)
    event = conversation(item, front.once)
    times = 1
    while (took := front.timed(event, times)[0]) < BATCH_SECONDS * 1e9 / 2:
        times *= 2
    times = max(1, int(times * BATCH_SECONDS * 1e9 / took))

    def sample() -> Sample:
        before = behind.cpu()
        wall, cpu = front.timed(event, times)
        beside = behind.cpu() - before if front is not behind else 0
        return Sample((cpu + beside) / times, wall / times)

    return sample


def _started(lab: Lab, item: Item, function: str, stack: ExitStack) -> Process:
    process = Process(lab, item, function)
    stack.callback(process.close)
    return process


def _interleaved(
    found: dict[Item, list[Sample] | str],
    measure: Mapping[Item, Callable[[], Sample]],
    rounds: int,
    chance: random.Random,
) -> dict[Item, list[Sample] | str]:
    for _ in range(rounds):
        order = [item for item, samples in found.items() if isinstance(samples, list)]
        chance.shuffle(order)
        for item in order:
            samples = found[item]
            assert isinstance(samples, list)
            samples.append(measure[item]())
    return found


def _wrapped(kms: Kms) -> tuple[str, str]:
    """Have KMS wrap the key that the SDK's codec unwraps at start."""
    client: Any = boto3.client(
        "kms",
        endpoint_url=kms.url,
        aws_access_key_id="local",
        aws_secret_access_key="local",  # noqa: S106 - nobody's
        region_name="us-east-1",
    )
    context = {"purpose": "mcp-request-state"}
    made = client.generate_data_key(KeyId=kms.arn, KeySpec="AES_256", EncryptionContext=context)
    return made["CiphertextBlob"].hex(), kms.arn
