"""How much memory a process has, in MB, as Linux tells it; elsewhere nobody tells, and no limit is kept."""

from __future__ import annotations

import os
from pathlib import Path

MB = 1024 * 1024


def resident(pid: int) -> int | None:
    """Say what a process has now."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_bytes().split()[1])
    except (OSError, IndexError, ValueError):
        return None
    return -(-pages * os.sysconf("SC_PAGE_SIZE") // MB)


def peak(pid: int) -> int | None:
    """Say the most that a process ever had."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
        line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return -(-int(line.split()[1]) // 1024)
    except (OSError, StopIteration, IndexError, ValueError):
        return None
