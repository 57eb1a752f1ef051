"""The public names keep an author's types: `assert_type` states them, and both type checkers verify them.

A checker reads tests/project/typing/ without running it. mistakes.py holds common mistakes of authors: a checker must
report every marked line and no other.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from shutil import copy
from typing import NamedTuple

import pytest

import mcp_functions
from mcp_functions import annotated, content, hooks, low_level
from tests.conformance import node

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGE = ROOT / "layers" / "shared"
MISTAKES = HERE / "typing" / "mistakes.py"
RIGHT = sorted(set((HERE / "typing").glob("*.py")) - {MISTAKES})
UNCHECKED = "# mypy: ignore-errors\n"
STRICT = {"typeCheckingMode": "strict", "pythonVersion": "3.11", "extraPaths": [str(PACKAGE)]}


class Complaint(NamedTuple):
    """A message of a checker: its file, line and rule."""

    file: str
    line: int
    rule: str


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy tests/project/typing/, the mistakes without the line that hides them: no line moves."""
    copied = tmp_path_factory.mktemp("typing")
    for file in RIGHT:
        copy(file, copied)
    text = MISTAKES.read_text(encoding="utf-8")
    assert text.startswith(UNCHECKED)
    (copied / MISTAKES.name).write_text("#\n" + text.removeprefix(UNCHECKED), encoding="utf-8")
    return copied


@pytest.fixture(scope="module")
def mypy(folder: Path) -> list[Complaint]:
    """Check as `make check` does, strictly."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml")]
    # away from the cache of `make check`, which another terminal may be using
    own = ["--cache-dir", str(ROOT / ".mypy_cache" / "typing"), "--no-error-summary", "--no-pretty"]
    files = map(str, sorted(folder.glob("*.py")))
    done = subprocess.run([*command, *own, *files], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert done.returncode == 1, done.stdout + done.stderr
    matches = re.findall(r"^(.+?):(\d+): error: .*\[([a-z-]+)\]$", done.stdout, re.MULTILINE)
    return [Complaint(Path(file).name, int(line), rule) for file, line, rule in matches]


@pytest.fixture(scope="module")
def pyright(folder: Path) -> list[Complaint]:
    """Check as strictly as pyright can."""
    node_js, pyright_js = node.needed(), node.MODULES / "pyright" / "index.js"
    (folder / "pyrightconfig.json").write_text(json.dumps(STRICT), encoding="utf-8")
    command = [str(node_js), str(pyright_js), "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 - pinned
    assert done.returncode == 1, done.stdout + done.stderr
    document = json.loads(done.stdout)
    assert document["summary"]["filesAnalyzed"] == len(RIGHT) + 1
    return [
        Complaint(Path(one["file"]).name, one["range"]["start"]["line"] + 1, one.get("rule", "?"))
        for one in document["generalDiagnostics"]
    ]


def marked() -> dict[int, set[str]]:
    """Read the marks: line to the rules of mypy that it breaks."""
    lines = MISTAKES.read_text(encoding="utf-8").splitlines()
    found = {number: re.search(r"  # E: ([a-z, -]+)$", line) for number, line in enumerate(lines, start=1)}
    return {number: set(mark[1].split(", ")) for number, mark in found.items() if mark}


def test_mypy_sees_the_types_that_authors_wrote(mypy: list[Complaint]) -> None:
    assert [complaint for complaint in mypy if complaint.file != MISTAKES.name] == []


def test_mypy_sees_every_mistake_and_no_other(mypy: list[Complaint]) -> None:
    seen: dict[int, set[str]] = {}
    for complaint in mypy:
        seen.setdefault(complaint.line, set()).add(complaint.rule)
    assert seen == marked()


def test_pyright_sees_the_types_that_authors_wrote(pyright: list[Complaint]) -> None:
    assert [complaint for complaint in pyright if complaint.file != MISTAKES.name] == []


def test_pyright_sees_every_mistake_and_no_other(pyright: list[Complaint]) -> None:
    assert {complaint.line for complaint in pyright} == marked().keys()


def test_the_type_checkers_see_every_public_name() -> None:
    message = "\n".join(file.read_text(encoding="utf-8") for file in RIGHT)
    public = [name for module in (mcp_functions, annotated, content, hooks, low_level) for name in module.__all__]
    assert [name for name in public if not re.search(rf"\b{name}\b", message)] == []
