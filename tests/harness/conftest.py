"""Fixtures for tests of the harness: projects of small functions, and HTTP connections."""

from __future__ import annotations

import shutil
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from mcp_functions_harness.command import run as main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


ROOT = Path(__file__).parents[2]
SKIP = shutil.ignore_patterns("__pycache__")
GREET = '''
from pydantic import BaseModel
from mcp_functions import Elicit, serve, tool

class Who(BaseModel):
    name: str

@tool
def greet(*, elicit: Elicit) -> str:
    """Greet whoever is there."""
    return elicit("who", "Who is there?", Who).name

handler = serve(greet)
'''


@pytest.fixture
def project(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    """Write files under functions/ and return that directory."""

    def write(files: dict[str, str]) -> Path:
        return write_functions(tmp_path / "functions", files)

    return write


def write_functions(directory: Path, files: dict[str, str]) -> Path:
    directory.mkdir(exist_ok=True)
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text, encoding="utf-8")
    return directory


@pytest.fixture
def connect() -> Iterator[Callable[[str], HTTPConnection]]:
    """Open connections that are closed after the test."""
    opened: list[HTTPConnection] = []

    def to(url: str) -> HTTPConnection:
        connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
        opened.append(connection)
        return connection

    yield to
    for connection in opened:
        connection.close()


@pytest.fixture
def demo_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """Copy the functions that the demo calls, so that a test may change them."""
    for folder in ("mcp", "update_work_item"):
        shutil.copytree(ROOT / "functions" / folder, tmp_path / "functions" / folder, ignore=SKIP)
    monkeypatch.chdir(tmp_path)
    assert main(["catalog"]) == 0
    capsys.readouterr()
    return tmp_path / "functions"


def change_tool(functions: Path, old: str, new: str) -> None:
    """Replace a text in the tool that the demo calls."""
    app = functions / "update_work_item" / "app.py"
    text = app.read_text(encoding="utf-8")
    assert old in text
    app.write_text(text.replace(old, new), encoding="utf-8")
