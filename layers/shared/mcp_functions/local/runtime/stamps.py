"""Whether files have changed since a process loaded them: the function's own, and the toolkit's where it is developed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import mcp_functions

if TYPE_CHECKING:
    from collections.abc import Iterator

Stamp: TypeAlias = "tuple[tuple[str, int, int], ...]"

TOOLKIT = Path(mcp_functions.__file__).parent
NOT_LOADED = frozenset({"__pycache__", "local", "testing"})  # of the toolkit, by functions


def of(folder: Path) -> Stamp:
    """Name the state of all files that a function in this folder may load: path, time and size of each."""
    # an installed package changes with its environment, and then the harness is started anew
    toolkit = () if "site-packages" in TOOLKIT.parts else _files(TOOLKIT)
    return tuple(sorted((*_files(folder), *toolkit)))


def _files(directory: Path | str) -> Iterator[tuple[str, int, int]]:
    try:
        entries = list(os.scandir(directory))
    except OSError:
        return  # it went while we looked
    for entry in entries:
        if entry.name.startswith(".") or entry.name in NOT_LOADED:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _files(entry.path)
        elif found := _stat(entry):
            yield (entry.path, found.st_mtime_ns, found.st_size)


def _stat(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat()
    except OSError:
        return None
