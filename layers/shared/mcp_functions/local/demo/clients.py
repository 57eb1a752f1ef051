"""The official clients, as programs that send one round and end: `*command FILE ANSWERS`.

FILE carries the conversation from one to the next, whichever client that is. The TypeScript one needs Node.js and an
npm package, which a reader of the demo may not have; the Python one is there wherever the demo is.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from mcp_functions.local.problems import DemoError

SCRIPT = Path("tests/clients/one_round.mjs")
PACKAGES = Path("tests/conformance")
PACKAGE = PACKAGES / "node_modules/@modelcontextprotocol/client/package.json"
OLDEST_NODE = 20  # PACKAGE says: "engines": {"node": ">=20"}
SECONDS = 60


class Client(NamedTuple):
    """What a reader calls it, and how it is run."""

    name: str
    command: tuple[str, ...]


PYTHON = Client("the official Python client", (sys.executable, "-m", "mcp_functions.local.demo.one_round"))


def typescript(root: Path) -> Client | str:
    """Find the official TypeScript client, and a Node.js for it; or say in one line why there is none.

    Args:
        root: of the project.

    """
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


def send(client: Client, file: Path, answers: dict[str, Any]) -> dict[str, Any]:
    """Send the round that FILE is at, from a process of its own.

    Args:
        client: which.
        file: with url, name, arguments; after a round, with what is asked and the state too.
        answers: contents of forms, by key.

    Returns:
        The result as it travels.

    Raises:
        DemoError: the client was refused, or did not run.

    """
    done = _run([*client.command, str(file), json.dumps(answers)])
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it did not say why"]
        surprise = f"{client.name} failed: {said[-1]}"
        raise DemoError(surprise)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)  # noqa: S603 - ours
