"""The official MCP clients in Python and TypeScript, each as a program that sends one request of a call and ends.

    <command> FILE ANSWERS    FILE keeps the call between two programs; ANSWERS is JSON, by the key of the question

The Python client is installed with the demo. The TypeScript client needs Node.js and an npm package.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mcp_functions_harness.problems import DemoError

if TYPE_CHECKING:
    from mcp_functions.protocol.wire_types import ResultObject
    from mcp_functions_harness.demo.one_round import Contents

SCRIPT = Path("tests/clients/one_round.mjs")
PACKAGES = Path("tests/conformance")
PACKAGE = PACKAGES / "node_modules/@modelcontextprotocol/client/package.json"
OLDEST_NODE = 20  # PACKAGE says: "engines": {"node": ">=20"}
SECONDS = 60  # the longest time that one program may take


class Client(NamedTuple):
    """One of the clients."""

    name: str  # for the terminal
    command: tuple[str, ...]  # without FILE and ANSWERS

    def send(self, file: Path, answers: Contents) -> ResultObject:
        """Send the next request of the call in a file, from a new process; return the result.

        Raises:
            DemoError: the server refused the request, or the client did not run.
        """
        process = _run([*self.command, str(file), json.dumps(answers)])
        if process.returncode:
            lines = process.stderr.strip().splitlines() or ["it gave no reason"]
            raise DemoError(f"{self.name} failed: {lines[-1]}")
        result: ResultObject = json.loads(process.stdout)
        return result


PYTHON = Client("the official Python client", (sys.executable, "-m", "mcp_functions_harness.demo.one_round"))


def typescript(root: Path) -> Client | str:
    """Find the official TypeScript client in a project; if it cannot run, return the reason."""
    node = shutil.which("node")
    if not node:
        return "Node.js is not installed"
    version = _run([node, "--version"]).stdout.strip()
    major = version.removeprefix("v").partition(".")[0]
    if not major.isdecimal() or int(major) < OLDEST_NODE:
        return f"Node.js {version} is older than {OLDEST_NODE}"
    if not (root / SCRIPT).is_file() or not (root / PACKAGE).is_file():
        return f"it is not installed (npm ci --prefix {PACKAGES})"
    released = json.loads((root / PACKAGE).read_text(encoding="utf-8"))["version"]
    return Client(f"the official TypeScript client {released}, Node.js {version}", (node, str(root / SCRIPT)))


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
