"""mcp-remote and the Inspector sign in at the front and call a tool, while every process ends with its response."""

from __future__ import annotations

import json
import os
import re
import subprocess
from contextlib import contextmanager
from threading import Thread
from typing import IO, TYPE_CHECKING, Any

import httpx2
import pytest

from mcp_functions_harness import Harness
from tests.clients.conftest import FUNCTIONS
from tests.conformance import node
from tests.support import consent, modes, ports

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
ADD = {"name": "add", "arguments": {"a": 2, "b": 40}}


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    modes.skip_without_runtime()
    state_dir = tmp_path_factory.mktemp("state")
    with Harness(FUNCTIONS, state_dir=state_dir, auth="oauth", runtime=True, reuse=False) as running:
        yield running


@contextmanager
def started(name: str, home: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Start a program with a new home. It opens no browser: the test reads the link that it writes."""
    command = [str(node.needed()), str(node.MODULES / ".bin" / name), *words]
    own = {"HOME": str(home), "MCP_REMOTE_CONFIG_DIR": str(home), "BROWSER": "none", "MCP_AUTO_OPEN_ENABLED": "true"}
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    running = subprocess.Popen(command, env={**os.environ, **own}, text=True, **pipes)  # noqa: S603 - pinned
    try:
        yield running
    finally:
        running.kill()
        running.communicate()


def sign_in(said: IO[str] | None, front: str) -> None:
    """Follow the link that a program writes, as its person does; read on until the program ends."""
    assert said
    has_signed_in = False
    for line in said:
        link = re.search(rf"{re.escape(front)}/authorize\?\S+", line)
        if link and not has_signed_in:
            has_signed_in = True
            httpx2.get(consent.sign_in(link[0], "ann").url)


def test_mcp_remote_signs_in_and_calls_a_tool_for_a_host_that_knows_only_stdio(
    harness: Harness, tmp_path: Path
) -> None:
    front = harness.url.removesuffix("/mcp")
    with started("mcp-remote", tmp_path, harness.url, "--allow-http") as remote:
        Thread(target=sign_in, args=(remote.stderr, front), daemon=True).start()
        assert remote.stdin
        assert remote.stdout

        def send(**message: object) -> None:
            assert remote.stdin
            remote.stdin.write(f"{json.dumps({'jsonrpc': '2.0', **message})}\n")
            remote.stdin.flush()

        send(id=1, method="initialize", params=INITIALIZE)
        assert json.loads(remote.stdout.readline())["result"]["protocolVersion"] == "2025-11-25"
        send(method="notifications/initialized")
        send(id=2, method="tools/call", params=ADD)
        assert json.loads(remote.stdout.readline())["result"]["content"] == [{"type": "text", "text": "42"}]


def test_the_inspector_signs_in_and_calls_a_tool(harness: Harness, tmp_path: Path) -> None:
    front = harness.url.removesuffix("/mcp")
    callback = f"http://127.0.0.1:{ports.find_free_port()}/oauth/callback"
    words = ["--cli", harness.url, "--transport", "http", "--callback-url", callback]
    words += ["--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=2", "b=40"]
    with started("mcp-inspector", tmp_path, *words) as inspector:
        Thread(target=sign_in, args=(inspector.stderr, front), daemon=True).start()
        assert inspector.stdout
        result = json.loads(inspector.stdout.read())
    assert result["content"] == [{"type": "text", "text": "42"}]
