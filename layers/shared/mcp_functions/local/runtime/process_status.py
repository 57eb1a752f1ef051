"""The memory and the state of a process, from /proc. Systems other than Linux have none, and so no memory limit."""

import math
import signal
from pathlib import Path


def resident_memory(pid: int) -> int | None:
    """Return the memory that a process has now, in MB; None if unknown."""
    return _megabytes(_status(pid).get("VmRSS"))  # proc(5): "resident set size"


def peak_memory(pid: int) -> int | None:
    """Return the most memory that a process has had, in MB; None if unknown."""
    return _megabytes(_status(pid).get("VmHWM"))  # proc(5): the "high water mark"


def _megabytes(size: str | None) -> int | None:
    """Read a size, e.g. "51200 kB"."""
    return None if size is None else math.ceil(int(size.split()[0]) / 1024)


def is_ending(pid: int) -> bool:
    """Whether a process was killed or has exited, although the waiter thread of `Process` has not seen its end yet."""
    status = _status(pid)
    if not status:
        return False  # the system has no /proc
    # proc(5): signals pending for the thread, and for the whole process, as hexadecimal bit sets
    pending = int(status.get("SigPnd", "0"), 16) | int(status.get("ShdPnd", "0"), 16)
    bit_of_sigkill = 1 << (signal.SIGKILL - 1)
    if pending & bit_of_sigkill:
        return True
    return "VmHWM" not in status  # a process that has exited has no memory


def _status(pid: int) -> dict[str, str]:
    """Return the fields of /proc/PID/status; {} if there is none."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    fields = [line.partition(":") for line in lines]
    return {name: value.strip() for name, _, value in fields}
