"""A project is a folder of functions; here they are plain ones, so that nothing but the harness is tested."""

from __future__ import annotations

from http.client import HTTPConnection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


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
        connection = HTTPConnection(urlsplit(url).netloc, timeout=10)
        opened.append(connection)
        return connection

    yield to
    for connection in opened:
        connection.close()
