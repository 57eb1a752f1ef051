"""`demo --pause`: a client answers a question three days later, to a server that has changed meanwhile.

    1. A client calls a tool, gets a question, writes its state to a file, and ends. The harness ends too.
    2. The harness starts again with a newer version of the function, whose clock is three days ahead. The KMS key is
       rotated.
    3. Other clients read the file, answer, and get the result.

Each client is a separate process. A temporary copy of the functions is changed, not the project.
"""

import contextlib
import os
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO
from urllib.parse import urlsplit

from mcp_functions import aws
from mcp_functions_harness import template
from mcp_functions_harness.demo import clients
from mcp_functions_harness.demo.clients import Client
from mcp_functions_harness.demo.rounds import COUNT, TOOL, Rounds, Transcript, expect, stage
from mcp_functions_harness.doubles import keyfile
from mcp_functions_harness.harness import Harness
from mcp_functions_harness.inspection.explain import describe

AHEAD = 3 * 24 * 3600  # how many seconds the clock of the upgraded function is ahead
NEWS = "(release 2)"  # what the upgraded function adds to its result
UPGRADE = {  # what the upgrade replaces in the function's app.py, where each text must be once
    "link created.": f"link created. {NEWS}",
    "from datetime import": "import time\nfrom datetime import",
    "serve(update_work_item)": f"serve(update_work_item, now=lambda: time.time() + {AHEAD})",
}
ROTATION = (
    ("KMS", "the key was rotated (RotateKeyOnDemand). AWS would make new material, and keep the old to"),
    ("", "decrypt; moto only lists the rotation. The data keys are new here too, and old ones open\n"),
)
NOT_COPIED = ("__pycache__", ".*")


def run(functions: Path, out: TextIO, *, runtime: bool = False) -> None:
    """Hold the conversation and show it."""
    with stage() as folder:
        _Pause(functions, folder, Transcript(out), runtime=runtime).run()


class _Pause:
    """Runs the demo: two servers, one after the other, and their clients."""

    def __init__(self, functions: Path, folder: Path, transcript: Transcript, *, runtime: bool) -> None:
        self._functions = functions
        self._root = functions.resolve().parent
        self._folder = folder
        self._transcript = transcript
        self._runtime = runtime
        self._rounds = Rounds(folder / "conversation.json", transcript)
        self._data_keys: list[str] = []  # the names of the data keys that have encrypted the states

    def run(self) -> None:
        write = self._transcript.write
        file = self._rounds.file
        with self._server(self._functions, "first") as harness:
            self._rounds.begin(self._functions, harness)
            upgraded = self._upgraded()
            port = urlsplit(harness.url).port or 0
            write(f"A client calls {TOOL} at {harness.url}\n")
            self._ask(clients.PYTHON, harness)
        write(f"The client has left {', '.join(self._rounds.read_file())}")
        write(f"in {file.name}, {file.stat().st_size} bytes, and is gone. So is the server.\n")
        (self._folder / "second").mkdir()
        # The key alone survives.
        shutil.copy(self._folder / "first" / keyfile.FILE, self._folder / "second")
        with self._server(upgraded, "second", port=port) as harness:
            self._show_changes()
            second = self._second_client()
            for _ in range(COUNT - 2):
                self._ask(second, harness)
            self._rounds.show_end(self._rounds.run_round(second.send, harness, second.name), NEWS)
        expect(len(set(self._data_keys)) == len(self._data_keys), "two servers sealed with one data key")
        write(f"{COUNT} rounds over three days, {COUNT} client processes, 2 servers, 2 versions, 2 data keys;")
        write(f"and between them nothing but {file.name}, which is the client's, and the key in KMS.")

    def _server(self, functions: Path, state: str, port: int = 0) -> Harness:
        return Harness(functions, port=port, state_dir=self._folder / state, runtime=self._runtime, reuse=False)

    def _upgraded(self) -> Path:
        """Copy the functions, and upgrade the copy of the tool; return the folder of the copies."""
        copy = self._folder / self._root.name / self._functions.name
        shutil.copytree(self._functions, copy, ignore=shutil.ignore_patterns(*NOT_COPIED))
        if (self._root / template.FILE).is_file():  # with --runtime, the harness reads it there
            shutil.copy(self._root / template.FILE, copy.parent)
        app = copy / TOOL / "app.py"
        text = app.read_text(encoding="utf-8")
        for old, new in UPGRADE.items():
            expect(text.count(old) == 1, f"{TOOL}/app.py cannot be upgraded: {old!r} must be in it once")
            text = text.replace(old, new)
        app.write_text(text, encoding="utf-8")
        return copy

    def _show_changes(self) -> None:
        """Rotate the KMS key, and show what has changed in the three days."""
        today = datetime.fromtimestamp(time.time() + AHEAD, UTC)
        expect(_rotate() == 1, "KMS does not list the rotation of its key")
        self._transcript.heading("Three days later")
        self._transcript.line("server", "started again at the same address, with nothing but its KMS key")
        self._transcript.line("clock", f"{today:%A, %d %B %Y %H:%M} UTC, for {TOOL}")
        self._transcript.line("upgrade", f'{TOOL} asks the same, and ends differently: "... {NEWS}"')
        for label, text in ROTATION:
            self._transcript.line(label, text)

    def _second_client(self) -> Client:
        client_or_reason = clients.typescript(self._root)
        if isinstance(client_or_reason, Client):
            return client_or_reason
        reason = f"The TypeScript client does not take over: {client_or_reason}."
        self._transcript.write(f"{reason} A new Python process does.\n")
        return clients.PYTHON

    def _ask(self, client: Client, harness: Harness) -> None:
        result = self._rounds.run_round(client.send, harness, client.name)
        self._rounds.show_questions(result)
        data_key = describe(result["requestState"])["key"]
        self._data_keys.append(data_key)
        self._transcript.line("data key", f"{data_key}, wrapped by KMS; it travels in the state")
        self._transcript.state(result["requestState"])


def _rotate() -> int:
    """Rotate the harness's key; return how many rotations KMS lists."""
    key = os.environ["MCP_KMS_KEYS"]
    with contextlib.closing(aws.boto3_client("kms", aws.CallLimits(1, 5, 3))) as kms:
        kms.rotate_key_on_demand(KeyId=key)
        return len(kms.list_key_rotations(KeyId=key)["Rotations"])
