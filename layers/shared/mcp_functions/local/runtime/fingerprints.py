"""Fingerprints of the files that a process has loaded.

A fingerprint is the path, the time and the size of each file. When it changes, the process has old code.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Fingerprint: TypeAlias = "tuple[tuple[str, int, int], ...]"  # path, nanoseconds of the last change, bytes


def of_folder(folder: Path) -> Fingerprint:
    """Return the fingerprint of a folder."""
    return tuple(sorted(_files(folder)))


def of_file(path: Path) -> Fingerprint:
    """Return the fingerprint of one file; () if it is missing."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return ((str(path), status.st_mtime_ns, status.st_size),)


def _files(directory: Path | str) -> Iterator[tuple[str, int, int]]:
    try:
        entries = list(os.scandir(directory))
    except OSError:
        return  # the folder was deleted in the meantime
    for entry in entries:
        if entry.name.startswith(".") or entry.name == "__pycache__":
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _files(entry.path)
        else:
            with contextlib.suppress(OSError):  # the file was deleted in the meantime
                status = entry.stat()
                yield (entry.path, status.st_mtime_ns, status.st_size)
