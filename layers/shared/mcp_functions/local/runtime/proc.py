"""The state of a process in Linux's /proc. Other systems have none, so there the memory limit does not apply."""

from __future__ import annotations

import os
import signal
from pathlib import Path

MB = 1024 * 1024
KILL = 1 << (signal.SIGKILL - 1)


def resident(pid: int) -> int | None:
    """Return a process's memory in MB; None if unknown."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_bytes().split()[1])
    except (OSError, IndexError, ValueError):
        return None
    return -(-pages * os.sysconf("SC_PAGE_SIZE") // MB)


def peak(pid: int) -> int | None:
    """Return the peak of a process's memory in MB; None if unknown."""
    high = _status(pid).get("VmHWM")
    return -(-int(high.split()[0]) // 1024) if high else None


def is_ending(pid: int) -> bool:
    """Whether a process was killed or has exited, although its status was not read yet."""
    status = _status(pid)
    pending = int(status.get("SigPnd", "0"), 16) | int(status.get("ShdPnd", "0"), 16)
    return bool(status) and (bool(pending & KILL) or "VmHWM" not in status)


def _status(pid: int) -> dict[str, str]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
