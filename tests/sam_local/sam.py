"""`sam` as the README runs it: in the project's folder, with only the options of the README."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from tests.sam_local.engine import ARCHITECTURE, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.sam_local.engine import Engine

BIN = ROOT / ".venv-sam" / "bin"
BUILT = ROOT / ".aws-sam" / "build"
PATIENCE = 180  # seconds to wait for output
OVERRIDES = ("--parameter-overrides", f"Architecture={ARCHITECTURE}")
NOBODY = {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nobody"}  # SAM hands a developer's own to functions
LOCAL = ("--skip-pull-image", *OVERRIDES)


@dataclass(frozen=True)
class Sam:
    """The SAM CLI on an engine, and what is exported where it runs."""

    engine: Engine
    logs: Path
    exported: Mapping[str, str] = field(default_factory=dict)

    def run(self, *words: str | Path) -> str:
        """Run a command to its end and return its output. An error shows all output."""
        done = subprocess.run(  # noqa: S603 - our own words
            [BIN / "sam", *words],
            cwd=ROOT,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode or not done.stdout:
            pytest.fail(f"sam {' '.join(map(str, words))}\n{done.stdout}\n{done.stderr}", pytrace=False)
        return done.stdout

    def shell(self, script: str, directory: Path) -> None:
        """Run commands as a person types them, who stops at the first that fails."""
        command = ["bash", "-euo", "pipefail", "-c", script]
        done = subprocess.run(  # noqa: S603 - our own page
            command, cwd=directory, env=self._environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.fail(f"{script}\n{done.stdout}\n{done.stderr}", pytrace=False)

    def local(self, command: str, *words: str | Path) -> str:
        """Run a command of `sam local` to its end."""
        return self.run("local", command, *words, *LOCAL)

    @contextmanager
    def serving(self, command: str, *words: str | Path, host: str = "127.0.0.1") -> Iterator[str]:
        """Run a server of `sam local` for a block; its URL."""
        port = free_port(host)
        where = ("--host", host, "--port", str(port))
        log = self.logs / f"{command}-{port}.log"
        with log.open("w") as said:
            serving = subprocess.Popen(  # noqa: S603 - our own words
                [BIN / "sam", "local", command, *words, *where, *LOCAL],
                cwd=ROOT, env=self._environment, stdout=said, stderr=said, start_new_session=True,
            )  # fmt: skip
        try:
            until_it_says("Running on", log, serving)
            yield f"http://{host}:{port}"
        finally:
            stop(serving)

    @property
    def _environment(self) -> dict[str, str]:
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "MCP_"))}
        path = os.pathsep.join([str(BIN), os.environ["PATH"]])
        quiet = {"SAM_CLI_TELEMETRY": "0", "AWS_DEFAULT_REGION": "us-east-1", "UNCOMPILED": "1", "PATH": path}
        return {**ours, **quiet, **NOBODY, **self.engine.environment, **self.exported}


@contextmanager
def kms(directory: Path, *words: str) -> Iterator[dict[str, str]]:
    """Run the harness's KMS for a block, and return the variables to export; none if this machine lacks the address."""
    command = [sys.executable, "-m", "mcp_functions_harness", "kms", "--port", "0", *words]
    log = directory / "kms.log"
    with log.open("w") as said:
        serving = subprocess.Popen(command, cwd=directory, stdout=said, stderr=said)  # noqa: S603 - our own words
    try:
        text = until_it_says("Ctrl-C stops", log, serving, or_ends=True)
        yield dict(re.findall(r"^export (\w+)=(.*)$", text, re.MULTILINE))
    finally:
        stop(serving)


def until_it_says(words: str, log: Path, serving: subprocess.Popen[bytes], *, or_ends: bool = False) -> str:
    """Wait for a text in a log, and return the log so far."""
    until = time.monotonic() + PATIENCE
    while words not in (said := log.read_text(encoding="utf-8")):
        if serving.poll() is not None and or_ends:
            return ""
        if serving.poll() is not None or time.monotonic() > until:
            pytest.fail(f"{log.name} never says {words!r}:\n{said}", pytrace=False)
        time.sleep(0.1)
    return said


def stop(serving: subprocess.Popen[bytes]) -> None:
    """Ask a server to stop, and wait until it has."""
    serving.send_signal(signal.SIGTERM)
    try:
        serving.wait(timeout=60)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            serving.kill()
        serving.wait()


def free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
