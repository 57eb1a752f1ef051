"""Fingerprints of the files that a process has loaded.

A fingerprint is the path, the time and the size of each file. When the fingerprint changes, the process has old code.
"""

import os
from pathlib import Path
from typing import TypeAlias

Fingerprint: TypeAlias = tuple[tuple[str, int, int], ...]  # path, time in nanoseconds, bytes


def of_folder(folder: Path) -> Fingerprint:
    """Return the fingerprint of a folder, without hidden files and without bytecode."""
    fingerprint: list[tuple[str, int, int]] = []
    for directory, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "__pycache__"]
        for name in files:
            if not name.startswith("."):
                fingerprint += of_file(Path(directory, name))
    return tuple(sorted(fingerprint))


def of_file(path: Path) -> Fingerprint:
    """Return the fingerprint of one file; () if it is missing."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return ((str(path), status.st_mtime_ns, status.st_size),)
