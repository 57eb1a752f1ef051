"""The environment of the contenders: separate processes with package trees, KMS and Invoke, and nothing else."""

from __future__ import annotations

import json
import marshal
import os
import random
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import boto3

from mcp_functions import tool
from mcp_functions.handlers import catalog
from mcp_functions_harness.environment import CREDENTIALS, STACK, endpoints
from tests.benchmarks import dialects, runtime_client, services
from tests.benchmarks.cases import TOOLS
from tests.benchmarks.contenders import ours
from tests.benchmarks.entrants import SDK_KMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.benchmarks.cases import Case
    from tests.benchmarks.dialects import Event
    from tests.benchmarks.entrants import Entrant
    from tests.benchmarks.environments import Trees
    from tests.benchmarks.services import Kms

MAX_TOOLS = "1000"  # entries on a page of this project's lists; peers send lists whole
BIGGEST = str(4 * 1024 * 1024)  # characters of a state: "the cap raised for it"
BEHIND = ("add", "ask")  # functions behind our endpoint
ALONE = {"", "json"}  # contenders that are an interpreter, and answer nothing
COLD, NOTHING, WARM = (f"import drive; drive.{name}()" for name in ("cold", "nothing", "warm"))
IMPORTS = ("-X", "importtime")


class Item(NamedTuple):
    """One case, one contender."""

    case: Case
    entrant: Entrant


class Answered(NamedTuple):
    """A process that has answered: its response, how long that was after its spawn, and what it took."""

    response: dict[str, Any] | None
    wall: int
    cpu: int
    memory: int
    modules: int
    said: str = ""


class Lab:
    """The services of all contenders: package trees, KMS, Invoke, and variables without those of this machine."""

    def __init__(self, trees: Trees, kms: Kms, folder: Path) -> None:
        """Take what there is; `folder` holds our endpoint's catalogs, and whatever processes leave."""
        self.trees, self.folder, self._kms = trees, folder, kms
        self.invoke_url = "http://127.0.0.1:9"  # no function, because only this project's endpoint invokes one
        self._wrapped, self._key = _wrapped(kms)

    def environ(self, entrant: Entrant) -> dict[str, str]:
        """Write the environment of a contender's process."""
        trees = [path for name in entrant.trees for path in self._trees(name)]
        around = {**CREDENTIALS, **endpoints(kms=self._kms.url, invoke=self.invoke_url)}
        own = {
            "MCP_STACK": STACK,
            "MCP_STAGE": "bench",
            "MCP_AUTH_MODE": "none",
            "MCP_KMS_KEYS": self._kms.arn,
        }
        own |= {"MCP_PAGE_SIZE": MAX_TOOLS, "MCP_MAX_STATE_CHARS": BIGGEST, "BENCH_CATALOGS": str(self.folder)}
        own |= {"BENCH_WRAPPED": self._wrapped} if entrant.title == SDK_KMS else {}
        plain = {"PATH": os.defpath, "PYTHONPATH": self.trees.path(trees), "PYTHONDONTWRITEBYTECODE": "1"}
        lambdas = {"AWS_LAMBDA_FUNCTION_NAME": f"{STACK}_bench", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512"}
        every = plain | lambdas | around | own | {"BENCH_KEY": self._kms.arn} | dict(entrant.environ)
        return {name: value for name, value in every.items() if value is not None}

    def _trees(self, name: str) -> tuple[Path, ...]:
        return self.trees.layers if name == "layers" else (self.trees.peer(name),)

    def cold(self, item: Item, function: str, event: Event | None, options: Sequence[str] = ()) -> Answered:
        """Run a new process until it has answered one event, and return its cost.

        Args:
            item: the case and the contender.
            function: of its module.
            event: none for an interpreter alone.
            options: of the interpreter; with options, its output is kept.

        Raises:
            WrongAnswer: it did not answer.

        """
        files = {name: self.folder / f"{name}.{random.getrandbits(64):x}" for name in ("event", "reply", "stderr")}
        files["event"].write_bytes(marshal.dumps((event, f"{STACK}_{function}")))
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, str(files["event"]), os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, str(files["stderr"]), flags, 0o600),
            (os.POSIX_SPAWN_OPEN, 3, str(files["reply"]), flags, 0o600),
        ]
        try:
            python, *words = self.command(item, function, COLD)
            command, environ = [python, *options, *words], self.environ(item.entrant)
            began = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            pid = os.posix_spawn(python, command, environ, file_actions=actions)
            _pid, status, usage = os.wait4(pid, 0)
            if status:
                raise dialects.WrongAnswer(files["stderr"].read_text(errors="replace")[-600:])
            response, ended, _cpu, memory, modules = marshal.loads(files["reply"].read_bytes())
            cpu = int((usage.ru_utime + usage.ru_stime) * 1e9)
            said = files["stderr"].read_text(errors="replace") if options else ""
            return Answered(response, ended - began, cpu, memory, modules, said)
        finally:
            for file in files.values():
                file.unlink(missing_ok=True)

    def cold_in_runtime(self, item: Item, function: str, event: Event) -> Answered:
        """Have Lambda's runtime client load a function and answer one event, and return its cost.

        Raises:
            WrongAnswer: it did not answer.

        """
        entrant = item.entrant._replace(trees=(*item.entrant.trees, "runtime"))
        argument = "" if item.case.argument is None else str(item.case.argument)
        environ = self.environ(entrant) | {"BENCH_CONTENDER": f"{entrant.module},{function},{argument}"}
        errors = self.folder / f"stderr.{random.getrandbits(64):x}"
        try:
            return Answered(*runtime_client.run(str(self.trees.python), environ, function, event, errors), modules=0)
        finally:
            errors.unlink(missing_ok=True)

    def command(self, item: Item, function: str, program: str) -> list[str]:
        """Write the command line of a contender's process."""
        python, entrant = str(self.trees.python), item.entrant
        if entrant.module in ALONE:
            return [python, "-c", NOTHING, entrant.module]
        argument = "" if item.case.argument is None else str(item.case.argument)
        return [python, "-c", program, entrant.module, function, argument if function == item.case.function else ""]


class Process:
    """A contender that stays, and answers events one after the other."""

    def __init__(self, lab: Lab, item: Item, function: str) -> None:
        """Start it."""
        self._name = f"{STACK}_{function}"
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

    def profiled(self, event: Event, times: int, file: str) -> None:
        """Answer an event so many times under cProfile, which writes to a file."""
        self._do("profile", event, self._name, times, file)

    def cpu(self) -> int:
        """Say how many nanoseconds of processor time it has used."""
        return int(self._do("cpu"))

    def size(self) -> tuple[int, int]:
        """Say how many KB of memory it has used, and how many modules it has imported."""
        memory, modules = self._do("size")
        return memory, modules

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
        """End the process."""
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


def write_catalogs(folder: Path, sizes: Sequence[int] = TOOLS) -> None:
    """Write what our endpoint offers: 0.json, with the functions behind it; and N.json, of so many tools."""
    functions = {name: getattr(ours, name)().handlers for name in BEHIND}
    (folder / "0.json").write_text(json.dumps(catalog.build_project(functions)), encoding="utf-8")

    def many(text: str, count: int) -> str:
        """Do one of many things to a text, so many times."""
        return text * count

    for size in sizes:
        tools = [tool(name=f"tool_{number:03}")(many) for number in range(size)]
        (folder / f"{size}.json").write_text(json.dumps(catalog.build(tools, "many")), encoding="utf-8")


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
