"""The public words keep an author's types: said with `assert_type`, and judged by both type checkers.

tests/typing/ is read and never run. Its mistakes.py holds what authors get wrong: a checker has to see every line that
is marked, and no other.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from shutil import copy
from typing import NamedTuple

import pytest

from mcp_functions import WORDS
from tests.conformance import node

HERE = Path(__file__).parent
ROOT = HERE.parent
PACKAGE = ROOT / "layers" / "shared"
MISTAKES = HERE / "typing" / "mistakes.py"
RIGHT = sorted(set((HERE / "typing").glob("*.py")) - {MISTAKES})
UNCHECKED = "# mypy: ignore-errors\n"
STRICT = {"typeCheckingMode": "strict", "pythonVersion": "3.11", "extraPaths": [str(PACKAGE)]}


class Complaint(NamedTuple):
    """What a checker says: about which file, which line, and by which of its rules."""

    file: str
    line: int
    rule: str


def mypy(*files: Path) -> list[Complaint]:
    """Check files as `make check` does, strictly."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml")]
    # away from the cache of `make check`, which another terminal may be using
    own = [
        "--cache-dir",
        str(ROOT / ".mypy_cache" / "typing"),
        "--no-error-summary",
        "--hide-error-context",
        "--no-pretty",
    ]
    done = subprocess.run([*command, *own, *map(str, files)], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = re.findall(r"^(.+?):(\d+): error: .*\[([a-z-]+)\]$", done.stdout, re.MULTILINE)
    assert bool(found) == bool(done.returncode), done.stdout
    return [Complaint(Path(file).name, int(line), rule) for file, line, rule in found]


def pyright(folder: Path) -> list[Complaint]:
    """Check the files of a folder, as strictly as pyright can."""
    node_js = node.needed()
    (folder / "pyrightconfig.json").write_text(json.dumps(STRICT), encoding="utf-8")
    pyright_js = node.MODULES / "pyright" / "index.js"
    command = [str(node_js), str(pyright_js), "--pythonpath", sys.executable, "--outputjson"]
    quiet = {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1", "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=quiet)  # noqa: S603 - pinned
    assert done.returncode in (0, 1), done.stdout + done.stderr
    said = json.loads(done.stdout)
    assert said["summary"]["filesAnalyzed"] == len(list(folder.glob("*.py")))
    return [
        Complaint(Path(one["file"]).name, one["range"]["start"]["line"] + 1, one.get("rule", "?"))
        for one in said["generalDiagnostics"]
    ]


@pytest.fixture
def mistakes(tmp_path: Path) -> Path:
    """Copy the mistakes without the line that hides them, and no line moves."""
    text = MISTAKES.read_text(encoding="utf-8")
    assert text.startswith(UNCHECKED)
    copied = tmp_path / "mistakes.py"
    copied.write_text("#\n" + text.removeprefix(UNCHECKED), encoding="utf-8")
    return copied


def marked() -> dict[int, set[str]]:
    """Read the marks: line to the rules of mypy that it breaks."""
    lines = MISTAKES.read_text(encoding="utf-8").splitlines()
    found = {number: re.search(r"  # E: ([a-z, -]+)$", line) for number, line in enumerate(lines, start=1)}
    return {number: set(mark[1].split(", ")) for number, mark in found.items() if mark}


def test_mypy_sees_the_types_that_authors_wrote() -> None:
    assert mypy(*RIGHT) == []


def test_mypy_sees_every_mistake_and_no_other(mistakes: Path) -> None:
    seen: dict[int, set[str]] = {}
    for complaint in mypy(mistakes):
        seen.setdefault(complaint.line, set()).add(complaint.rule)
    assert seen == marked()


def test_pyright_sees_the_types_that_authors_wrote(tmp_path: Path) -> None:
    for file in RIGHT:
        copy(file, tmp_path)
    assert pyright(tmp_path) == []


def test_pyright_sees_every_mistake_and_no_other(mistakes: Path) -> None:
    assert {complaint.line for complaint in pyright(mistakes.parent)} == marked().keys()


def test_every_public_word_is_shown_to_the_type_checkers() -> None:
    shown = "\n".join(file.read_text(encoding="utf-8") for file in RIGHT)
    unshown = {word for words in WORDS.values() for word in words if not re.search(rf"\b{word}\b", shown)}
    assert unshown == set()
