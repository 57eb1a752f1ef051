"""`demo --pause`: another client answers a question three days later, to a server that has changed meanwhile.

Each round is a client in a separate process. Only the client's file passes from one round to the next. In between the
harness stops, the KMS key is rotated, and a temporary copy of the functions is upgraded, with its clock three days
ahead.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

from mcp_functions.aws import by_boto3
from mcp_functions.local.demo import clients
from mcp_functions.local.demo.expectations import ANSWERS, ARGUMENTS, ENDING, ROUNDS, TOOL, check_catalog, expect, stage
from mcp_functions.local.demo.transcript import Transcript
from mcp_functions.local.doubles import keyfile
from mcp_functions.local.harness import Harness
from mcp_functions.local.inspection.public_part import describe

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_functions.local.demo.clients import Client
    from mcp_functions.local.lambdas import Invocation

AHEAD = 3 * 24 * 3600  # seconds
NEWS = "(release 2)"
UPGRADE = {  # each text is once in the function's app.py
    "link created.": f"link created. {NEWS}",
    "from datetime import": "import time\nfrom datetime import",
    "serve(update_work_item)": f"serve(update_work_item, now=lambda: time.time() + {AHEAD})",
}
NOT_COPIED = ("__pycache__", ".*")


def run(functions: Path, out: TextIO, *, runtime: bool = False) -> None:
    """Hold the conversation and show it.

    Args:
        functions: the directory of functions, with `update_work_item`; the demo changes a copy.
        out: where to write.
        runtime: run each round in a process of the real Lambda runtime.

    Raises:
        Problem: the user has to correct something first.
        DemoError: the conversation differed from the expected one.
    """
    with stage() as folder:
        _Pause(functions, folder, Transcript(out), runtime=runtime).hold()


class _Pause:
    """The two servers, and the clients between them."""

    def __init__(self, functions: Path, folder: Path, transcript: Transcript, *, runtime: bool) -> None:
        self._functions, self._folder, self._transcript, self._runtime = functions, folder, transcript, runtime
        self._file = folder / "conversation.json"
        self._invocations: list[Invocation] = []
        self._keys: list[str] = []

    def hold(self) -> None:
        root = self._functions.resolve().parent
        with self._server(self._functions, self._folder / "first") as harness:
            check_catalog(self._functions, harness)
            upgraded = self._upgraded(root)
            url, port = harness.url, int(harness.url.rpartition(":")[2].partition("/")[0])
            self._write({"url": url, "name": TOOL, "arguments": ARGUMENTS})
            self._transcript.write(f"A client calls {TOOL} at {url}\n")
            self._show_questions(1, self._round(1, clients.PYTHON, harness))
        size = self._file.stat().st_size
        self._transcript.write(f"The client has left {', '.join(self._read())}")
        self._transcript.write(f"in {self._file.name}, {size} bytes, and is gone. So is the server.\n")
        (self._folder / "second").mkdir()
        shutil.copy(self._folder / "first" / keyfile.FILE, self._folder / "second")  # only the key survives
        with self._server(upgraded, self._folder / "second", port=port) as harness:
            self._change_server()
            second = clients.typescript(root)
            if isinstance(second, str):
                self._transcript.write(
                    f"The TypeScript client does not take over: {second}. A new Python process does.\n"
                )
                second = clients.PYTHON
            for number in range(2, ROUNDS):
                self._show_questions(number, self._round(number, second, harness))
            self._show_end(self._round(ROUNDS, second, harness))

    def _server(self, functions: Path, state_dir: Path, port: int = 0) -> Harness:
        return Harness(functions, port=port, state_dir=state_dir, runtime=self._runtime, reuse=False)

    def _upgraded(self, root: Path) -> Path:
        copy = self._folder / root.name / self._functions.name
        shutil.copytree(self._functions, copy, ignore=shutil.ignore_patterns(*NOT_COPIED))
        for template in root.glob("template.y*ml"):  # the runtime reads it, beside the functions
            shutil.copy(template, copy.parent)
        app = copy / TOOL / "app.py"
        text = app.read_text(encoding="utf-8")
        for old, new in UPGRADE.items():
            expect(text.count(old) == 1, f"{TOOL}/app.py cannot be upgraded: {old!r} must be in it once")
            text = text.replace(old, new)
        app.write_text(text, encoding="utf-8")
        return copy

    def _change_server(self) -> None:
        today = datetime.fromtimestamp(time.time() + AHEAD, UTC)
        self._transcript.heading("Three days later")
        self._transcript.line("server", "started again at the same address, with nothing but its KMS key")
        self._transcript.line("clock", f"{today:%A, %d %B %Y %H:%M} UTC, for {TOOL}")
        self._transcript.line("upgrade", f'{TOOL} asks the same, and ends differently: "... {NEWS}"')
        expect(_rotate() == 1, "KMS does not list the rotation of its key")
        self._transcript.line(
            "KMS", "the key was rotated (RotateKeyOnDemand). AWS would make new material, and keep the old to"
        )
        self._transcript.line(
            "", "decrypt; moto only lists the rotation. The data keys are new here too, and old ones open\n"
        )

    def _round(self, number: int, client: Client, harness: Harness) -> dict[str, Any]:
        questions = self._read().get("inputRequests") or {}
        unknown = questions.keys() - ANSWERS.keys()
        expect(not unknown, f"the demo has no answer to {', '.join(unknown)}")
        answers = {key: ANSWERS[key] for key in questions}
        self._transcript.heading(f"Round {number}: {client.name}")
        self._transcript.call(TOOL, ARGUMENTS, answers, number - 1)
        result = clients.send(client, self._file, answers)
        self._invocations.append([invocation for invocation in harness.invocations if invocation.folder == TOOL][-1])
        self._transcript.invocation(self._invocations[-1])
        return result

    def _show_questions(self, number: int, result: dict[str, Any]) -> None:
        expect("requestState" in result, f"round {number} ended the call: {_text(result)}")
        for key, request in result["inputRequests"].items():
            self._transcript.question(key, request["params"]["message"], request["params"]["requestedSchema"])
        state = result["requestState"]
        self._keys.append(describe(state)["key"])
        self._transcript.line("data key", f"{self._keys[-1]}, wrapped by KMS; it travels in the state")
        self._transcript.state(state)

    def _show_end(self, result: dict[str, Any]) -> None:
        text = _text(result)
        expect(text.startswith(ENDING) and text.endswith(NEWS), f"the call ended with another result: {text}")
        expect(len({one.request_id for one in self._invocations}) == ROUNDS, "two rounds were one invocation")
        expect(len(set(self._keys)) == len(self._keys), "two servers sealed with one data key")
        self._transcript.result(text)
        self._transcript.write(
            f"{ROUNDS} rounds over three days, {ROUNDS} client processes, 2 servers, 2 versions, 2 data keys;"
        )
        self._transcript.write(
            f"and between them nothing but {self._file.name}, which is the client's, and the key in KMS."
        )

    def _read(self) -> dict[str, Any]:
        kept: dict[str, Any] = json.loads(self._file.read_text(encoding="utf-8"))
        return kept

    def _write(self, kept: dict[str, Any]) -> None:
        self._file.write_text(json.dumps(kept), encoding="utf-8")


def _rotate() -> int:
    kms, key = by_boto3.client("kms", connect_seconds=1, read_seconds=5, attempts=3), os.environ["MCP_KMS_KEYS"]
    with contextlib.closing(kms):
        kms.rotate_key_on_demand(KeyId=key)
        return len(kms.list_key_rotations(KeyId=key)["Rotations"])


def _text(result: dict[str, Any]) -> str:
    if "requestState" in result:
        return "it asks again"
    return " ".join(block.get("text", "") for block in result["content"])
