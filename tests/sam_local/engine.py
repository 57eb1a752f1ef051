"""A container engine for `sam local`: the machine's own with AWS's image, or scripts/sam-engine.sh with a stand-in.

The stand-in is not AWS's image, so a report of a run must name it. This module stops only an engine that it started.
"""

from __future__ import annotations

import ipaddress
import json
import os
import platform
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "sam-engine.sh"
SAM_PYTHON = ROOT / ".venv-sam" / "bin" / "python"
# Lambda has two architectures; the machine's own needs no emulation.
ARCHITECTURE = {"aarch64": "arm64", "arm64": "arm64"}.get(platform.machine(), "x86_64")


@dataclass(frozen=True)
class Engine:
    """A Docker that answers.

    Attributes:
        environment: what reaches it.
        image: what the functions run in, in words. It is there, so `sam local` need not pull it.

    """

    environment: dict[str, str]
    image: str

    def docker(self, *words: str) -> str:
        """Ask it something."""
        return _run("docker", *words, environment=self.environment).stdout

    @property
    def bridge(self) -> str:
        """The address under which containers reach this machine."""
        (network,) = json.loads(self.docker("network", "inspect", "bridge"))
        (configured, *_) = network["IPAM"]["Config"]
        return str(configured.get("Gateway") or ipaddress.ip_network(configured["Subnet"])[1])


@contextmanager
def running() -> Iterator[Engine]:
    """Find an engine, or start one until the end of the block; where neither is possible skip, but fail in CI."""
    if _run("docker", "version").returncode == 0:
        yield _own()
    elif _run(SCRIPT, "status").returncode == 0:  # it ran before, so its owner stops it
        yield _with_stand_in(_started())
    else:
        try:
            yield _with_stand_in(_started())
        finally:
            _run(SCRIPT, "stop")


def _own() -> Engine:
    image = _run(SCRIPT, "image", SAM_PYTHON).stdout.strip()
    if _run("docker", "image", "inspect", image).returncode == 0 or _run("docker", "pull", image).returncode == 0:
        return Engine({}, f"AWS's image, {image}")
    return cannot(f"this machine's engine has no {image} and cannot pull it")


def _with_stand_in(host: str) -> Engine:
    return Engine({"DOCKER_HOST": host}, "a stand-in made of Debian and this machine's CPython, NOT in AWS's image")


def _started() -> str:
    if not shutil.which("apt-get") or os.geteuid() != 0:
        return cannot("there is no engine (docker), and to prepare one takes root and apt-get")
    done = _run(SCRIPT, "start", SAM_PYTHON)
    return done.stdout.strip() if done.returncode == 0 else cannot(f"no engine could be prepared:\n{done.stderr}")


def cannot(reason: str) -> NoReturn:
    """Skip everything that needs an engine, but fail in CI, which skips nothing."""
    if os.environ.get("CI", "") not in {"", "false"}:
        pytest.fail(f"{reason} (CI skips nothing)", pytrace=False)
    pytest.skip(reason)


def _run(
    program: str | Path, *words: str | Path, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [program, *words]
    try:
        return subprocess.run(  # noqa: S603 - our own words
            command, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return subprocess.CompletedProcess(command, 127, "", f"{program} is not installed")
