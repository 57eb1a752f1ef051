"""Tries a server before it is adopted, in a temporary folder and with no other packages than its requirements.txt.

    task/        the files that `--into` would copy
    packages/    links to installed packages: those of requirements.txt and of the layer, and their dependencies

The server cannot import a package that only this machine has. No index is asked whether it has these versions.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mcp_functions
from mcp_functions_harness import environment
from mcp_functions_harness.adoption import loading, requirements

if TYPE_CHECKING:
    from mcp_functions_harness.adoption.loading import Found
    from mcp_functions_harness.adoption.sources import Sources

SECONDS = 60  # until a file that does not finish loading is given up
MAX_TRIES = 20  # each but the last finds one more module that the server imports
NEVER_ENDS = f"it did not end within {SECONDS} s: call run() only under `if __name__ == '__main__'`"


@dataclass(frozen=True)
class Trial:
    """The result of a trial: the lines of requirements.txt, and the members of `loading.Found`."""

    requirements: list[str]
    refused: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    functions: frozenset[tuple[str, int]] = frozenset()
    lists_nothing: bool = False
    failure: str = ""  # "" if the server was loaded
    missing: str = ""
    is_of_sdk: bool = False
    variable: str = ""

    @classmethod
    def of(cls, found: Found, requirements: list[str]) -> Trial:
        """Read the line of the process."""
        places = frozenset((path, line) for path, line in found.get("functions", ()))
        members: Any = {**found, "functions": places}
        return cls(requirements, **members)


def run(sources: Sources, variable: str) -> Trial:
    """Load a server in a new process. A module that it imports by a computed name is added to its sources."""
    for _each in range(MAX_TRIES):
        lines = requirements.lines_for(sources.packages)
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary).resolve()
            _write(sources, lines, folder)
            trial = Trial.of(_load(folder, sources.module, variable), lines)
        if not trial.missing or not sources.add(trial.missing):
            return trial
    return trial


def _write(sources: Sources, lines: list[str], folder: Path) -> None:
    for name, file in sources.files.items():
        (folder / "task" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, folder / "task" / name)
    packages = folder / "packages"
    packages.mkdir()
    whole: set[str] = set()  # packages that are linked as one folder, with their bytecode
    for name, path in requirements.files_of(lines):
        top, _, inside = name.partition("/")
        if top in whole:
            continue
        folder_of_package = path.parents[inside.count("/")] if inside else path
        if inside and not (packages / top).exists() and (folder_of_package / "__init__.py").is_file():
            (packages / top).symlink_to(folder_of_package)
            whole.add(top)
        elif path.is_file() and not (packages / name).exists():
            (packages / name).parent.mkdir(parents=True, exist_ok=True)
            (packages / name).symlink_to(path)
    if not (packages / mcp_functions.__name__).exists():
        (packages / mcp_functions.__name__).symlink_to(Path(mcp_functions.__file__).parent)


def _load(folder: Path, module: str, variable: str) -> Found:
    """Run `loading` in a process that has only the two folders."""
    isolated = [sys.executable, "-I", "-S", "-B", "-W", "ignore"]
    command = [*isolated, loading.__file__, str(folder / "task"), str(folder / "packages"), module, variable]
    variables = {name: value for name, value in {**os.environ, **environment.CREDENTIALS}.items() if value is not None}
    try:
        ended = subprocess.run(
            command,
            env=variables,
            cwd=folder / "task",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"failure": NEVER_ENDS}
    for line in reversed(ended.stdout.splitlines()):
        if line.startswith(loading.MARK):
            found: Found = json.loads(line.removeprefix(loading.MARK))
            return found
    return {"failure": f"its process ended with exit code {ended.returncode}"}
