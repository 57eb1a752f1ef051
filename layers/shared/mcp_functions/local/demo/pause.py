"""`demo --pause`: a question is answered three days later, by another client, and the server is not the same either.

Each round is a client in a process of its own, and all that passes from one to the next is a file of the client's. In
between the harness stops, the KMS key is rotated, and a temporary copy of the functions is upgraded, with its clock
three days on: shipped code has no branch for any of this.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from mcp_functions.local import banner, catalog
from mcp_functions.local.demo import clients
from mcp_functions.local.demo.question import ANSWERS, ARGUMENTS, ENDING, ROUNDS, TOOL
from mcp_functions.local.demo.transcript import Page
from mcp_functions.local.doubles import keyfile
from mcp_functions.local.harness import Harness
from mcp_functions.local.problems import DemoError, Problem, first_line
from mcp_functions.seal.envelope import describe
from mcp_functions.seal.kms import boto3_client

if TYPE_CHECKING:
    from mcp_functions.local.demo.clients import Client
    from mcp_functions.local.lambdas import Invocation

AHEAD = 3 * 24 * 3600  # seconds
NEWS = "(release 2)"
UPGRADE = {  # each stands once in the function's app.py
    "link created.": f"link created. {NEWS}",
    "from datetime import": "import time\nfrom datetime import",
    "serve(update_work_item)": f"serve(update_work_item, now=lambda: time.time() + {AHEAD})",
}
PACKED = ("__pycache__", ".*")


def run(functions: Path, out: TextIO, *, runtime: bool = False) -> None:
    """Hold the conversation and show it.

    Args:
        functions: the directory of functions, with `update_work_item` in it; it is not changed.
        out: where to write.
        runtime: a process of the real Lambda runtime for every round.

    Raises:
        Problem: the user has to put something right first.
        DemoError: the conversation went another way.

    """
    quiet = io.StringIO()  # the functions' own logs would stand between the lines
    with (
        contextlib.redirect_stdout(quiet),
        contextlib.redirect_stderr(quiet),
        tempfile.TemporaryDirectory() as folder,
    ):
        try:
            _Pause(functions, Path(folder), Page(out), runtime=runtime).hold()
        except (Problem, DemoError):
            raise
        except Exception as error:
            raise DemoError(first_line(error)) from error


class _Pause:
    """The two servers, and what the reader is shown of the clients between them."""

    def __init__(self, functions: Path, folder: Path, page: Page, *, runtime: bool) -> None:
        self._functions, self._folder, self._page, self._runtime = functions, folder, page, runtime
        self._file = folder / "conversation.json"
        self._ran: list[Invocation] = []
        self._keys: list[str] = []

    def hold(self) -> None:
        root = self._functions.resolve().parent
        with self._server(self._functions, self._folder / "first") as harness:
            if catalog.differences(catalog.read(self._functions), catalog.describe(harness.functions.values())):
                raise Problem(banner.STALE)
            upgraded = self._upgraded(root)
            url, port = harness.url, int(harness.url.rpartition(":")[2].partition("/")[0])
            self._write({"url": url, "name": TOOL, "arguments": ARGUMENTS})
            self._page.say(f"A client calls {TOOL} at {url}\n")
            self._asked(1, self._round(1, clients.PYTHON, harness))
        size = self._file.stat().st_size
        self._page.say(f"The client has left {', '.join(self._read())}")
        self._page.say(f"in {self._file.name}, {size} bytes, and is gone. So is the server.\n")
        (self._folder / "second").mkdir()
        shutil.copy(self._folder / "first" / keyfile.FILE, self._folder / "second")  # and nothing else of the server's
        with self._server(upgraded, self._folder / "second", port=port) as harness:
            self._meanwhile()
            found = clients.typescript(root)
            second = clients.PYTHON if isinstance(found, str) else found
            if isinstance(found, str):
                self._page.say(f"The TypeScript client does not take over: {found}. Another Python process does.\n")
            for number in range(2, ROUNDS):
                self._asked(number, self._round(number, second, harness))
            self._ended(self._round(ROUNDS, second, harness))

    def _server(self, functions: Path, state_dir: Path, port: int = 0) -> Harness:
        return Harness(functions, port=port, state_dir=state_dir, runtime=self._runtime, reuse=False)

    def _upgraded(self, root: Path) -> Path:
        copy = self._folder / root.name / self._functions.name
        shutil.copytree(self._functions, copy, ignore=shutil.ignore_patterns(*PACKED))
        for template in root.glob("template.y*ml"):  # the runtime reads it, beside the functions
            shutil.copy(template, copy.parent)
        app = copy / TOOL / "app.py"
        text = app.read_text(encoding="utf-8")
        for old, new in UPGRADE.items():
            _expect(text.count(old) == 1, f"{TOOL}/app.py cannot be upgraded: {old!r} does not stand in it once")
            text = text.replace(old, new)
        app.write_text(text, encoding="utf-8")
        return copy

    def _meanwhile(self) -> None:
        today = datetime.fromtimestamp(time.time() + AHEAD, UTC)
        self._page.head("Three days later")
        self._line("server", "started again at the same address, with nothing but its KMS key")
        self._line("clock", f"{today:%A, %d %B %Y %H:%M} UTC, for {TOOL}")
        self._line("upgrade", f'{TOOL} asks the same, and ends differently: "... {NEWS}"')
        _expect(_rotate() == 1, "KMS does not list the rotation of its key")
        self._line("KMS", "the key was rotated (RotateKeyOnDemand). AWS would make new material, and keep the old to")
        self._line("", "decrypt; moto only lists the rotation. The data keys are new here too, and old ones open\n")

    def _round(self, number: int, client: Client, harness: Harness) -> dict[str, Any]:
        asked = self._read().get("inputRequests") or {}
        _expect(asked.keys() <= ANSWERS.keys(), f"nobody knows an answer to {', '.join(asked.keys() - ANSWERS.keys())}")
        answers = {key: ANSWERS[key] for key in asked}
        self._page.head(f"Round {number}: {client.name}")
        self._page.sent(TOOL, ARGUMENTS, answers, number - 1)
        result = clients.send(client, self._file, answers)
        self._ran.append([invocation for invocation in harness.invocations if invocation.folder == TOOL][-1])
        self._page.ran(self._ran[-1])
        return result

    def _asked(self, number: int, result: dict[str, Any]) -> None:
        _expect("requestState" in result, f"round {number} ended the call: {_text(result)}")
        for key, request in result["inputRequests"].items():
            self._page.asked(key, request["params"]["message"], request["params"]["requestedSchema"])
        state = result["requestState"]
        self._keys.append(describe(state)["key"])
        self._line("data key", f"{self._keys[-1]}, wrapped by KMS; it travels in the state")
        self._page.state(state)

    def _ended(self, result: dict[str, Any]) -> None:
        text = _text(result)
        _expect(text.startswith(ENDING) and text.endswith(NEWS), f"the call did not end as it should: {text}")
        _expect(len({ran.request_id for ran in self._ran}) == ROUNDS, "two rounds were one invocation")
        _expect(len(set(self._keys)) == len(self._keys), "two servers sealed with one data key")
        self._page.result(text)
        self._page.say(
            f"{ROUNDS} rounds over three days, {ROUNDS} client processes, 2 servers, 2 versions, 2 data keys;"
        )
        self._page.say(f"and between them nothing but {self._file.name}, which is the client's, and the key in KMS.")

    def _line(self, label: str, text: str) -> None:
        self._page.say(f"  {label:<8} {text}")

    def _read(self) -> dict[str, Any]:
        kept: dict[str, Any] = json.loads(self._file.read_text(encoding="utf-8"))
        return kept

    def _write(self, kept: dict[str, Any]) -> None:
        self._file.write_text(json.dumps(kept), encoding="utf-8")


def _rotate() -> int:
    kms, key = boto3_client(), os.environ["MCP_KMS_KEYS"]  # the harness's, as its functions see it
    with contextlib.closing(kms):
        kms.rotate_key_on_demand(KeyId=key)
        return len(kms.list_key_rotations(KeyId=key)["Rotations"])


def _text(result: dict[str, Any]) -> str:
    if "requestState" in result:
        return "it asks again"
    return " ".join(block.get("text", "") for block in result["content"])


def _expect(truth: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not truth:
        raise DemoError(otherwise)
