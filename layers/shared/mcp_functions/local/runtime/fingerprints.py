"""Whether files changed since a process loaded them: the function's own, and the toolkit's where it is developed."""

from __future__ import annotations

import compileall
import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import mcp_functions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

Stamp: TypeAlias = "tuple[tuple[str, int, int], ...]"

TOOLKIT = Path(mcp_functions.__file__).parent
NOTHING: Stamp = ()
NOT_LOADED = frozenset({"__pycache__", "local", "testing"})  # of the toolkit, by a function


def of(folder: Path) -> Stamp:
    """Name the state of a function's own files: path, time and size of each."""
    return tuple(sorted(_files(folder)))


def of_toolkit() -> Stamp:
    """Name the state of the toolkit's files; nothing where it is installed, for then the harness is started anew."""
    return () if "site-packages" in TOOLKIT.parts else tuple(sorted(_files(TOOLKIT, NOT_LOADED)))


def compile_toolkit() -> None:
    """Write the toolkit's bytecode, which a function's process only reads: so that no cold start is a compilation."""
    compileall.compile_dir(TOOLKIT, quiet=2)  # what does not compile, the process that loads it will say


def _files(directory: Path | str, skipped: Collection[str] = ("__pycache__",)) -> Iterator[tuple[str, int, int]]:
    try:
        entries = list(os.scandir(directory))
    except OSError:
        return  # it went while we looked
    for entry in entries:
        if entry.name.startswith(".") or entry.name in skipped:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _files(entry.path, skipped)
        elif found := _stat(entry):
            yield (entry.path, found.st_mtime_ns, found.st_size)


def _stat(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat()
    except OSError:
        return None
