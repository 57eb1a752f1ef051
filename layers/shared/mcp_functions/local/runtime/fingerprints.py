"""Fingerprints of the files that a process has loaded: the function's, and the toolkit's while it is developed.

A fingerprint is the path, the time and the size of each file. When it changes, the process has old code.
"""

from __future__ import annotations

import compileall
import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import mcp_functions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

Fingerprint: TypeAlias = "tuple[tuple[str, int, int], ...]"  # path, nanoseconds of the last change, bytes

TOOLKIT = Path(mcp_functions.__file__).parent
NOTHING: Fingerprint = ()
NOT_LOADED = frozenset({"__pycache__", "local", "testing"})  # a function loads none of these


def of(folder: Path) -> Fingerprint:
    """Return the fingerprint of a folder."""
    return tuple(sorted(_files(folder)))


def of_file(path: Path) -> Fingerprint:
    """Return the fingerprint of one file; NOTHING if it is missing."""
    try:
        status = path.stat()
    except OSError:
        return NOTHING
    return ((str(path), status.st_mtime_ns, status.st_size),)


def of_toolkit() -> Fingerprint:
    """Return the fingerprint of the toolkit; NOTHING if it is installed, because then its files do not change."""
    if "site-packages" in TOOLKIT.parts:
        return NOTHING
    return tuple(sorted(_files(TOOLKIT, NOT_LOADED)))


def compile_toolkit() -> None:
    """Write the toolkit's bytecode, so that no cold start compiles it: a function's process only reads bytecode."""
    compileall.compile_dir(TOOLKIT, quiet=2)  # a file with an error fails again where it is loaded


def _files(directory: Path | str, skipped: Collection[str] = ("__pycache__",)) -> Iterator[tuple[str, int, int]]:
    try:
        entries = list(os.scandir(directory))
    except OSError:
        return  # the folder was deleted in the meantime
    for entry in entries:
        if entry.name.startswith(".") or entry.name in skipped:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _files(entry.path, skipped)
        else:
            with contextlib.suppress(OSError):  # the file was deleted in the meantime
                status = entry.stat()
                yield (entry.path, status.st_mtime_ns, status.st_size)
