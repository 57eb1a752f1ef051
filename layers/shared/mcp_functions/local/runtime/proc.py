"""What Linux tells of a process, under /proc; elsewhere nobody tells, and no memory limit is kept."""

from __future__ import annotations

import os
import signal
from pathlib import Path

MB = 1024 * 1024
KILL = 1 << (signal.SIGKILL - 1)


def resident(pid: int) -> int | None:
    """Say how many MB of memory a process has now."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_bytes().split()[1])
    except (OSError, IndexError, ValueError):
        return None
    return -(-pages * os.sysconf("SC_PAGE_SIZE") // MB)


def peak(pid: int) -> int | None:
    """Say the most MB that a process ever had."""
    high = _status(pid).get("VmHWM")
    return -(-int(high.split()[0]) // 1024) if high else None


def is_ending(pid: int) -> bool:
    """Whether a process that nobody has waited for yet will do nothing more: it was killed, or has exited."""
    status = _status(pid)
    pending = int(status.get("SigPnd", "0"), 16) | int(status.get("ShdPnd", "0"), 16)
    return bool(status) and (bool(pending & KILL) or "VmHWM" not in status)


def _status(pid: int) -> dict[str, str]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
