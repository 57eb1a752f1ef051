"""One process of a function, in its own process group.

Two threads follow it: one reads its output line by line, the other waits for its end. Its memory is read from /proc.
Other systems than Linux have no /proc, so there the memory limit does not apply.

The harness writes its own lines into the same pipe, so that they keep their order among the function's lines.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from threading import Lock, Thread
from typing import TYPE_CHECKING

from mcp_functions.local.runtime import watchdog
from mcp_functions.local.runtime.api import Exit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.local.runtime.api import ProcessEvent, RuntimeApi

MB = 1024 * 1024
KILL = 1 << (signal.SIGKILL - 1)  # the bit of SIGKILL in a set of pending signals
EXIT_SECONDS = 5.0  # longest wait for a killed process to end, and for its last output
# Longest wait for the output of an ended process. A child that left its process group may keep the pipe open.
OUTPUT_SECONDS = 2.0


@dataclass(eq=False)
class Process:
    """A running process, started when the object is made."""

    command: Sequence[str]  # the program and its arguments
    api: RuntimeApi = field(kw_only=True)  # the Runtime API that this process alone uses; it stops with the process
    folder: Path = field(kw_only=True)  # its working directory
    variables: Mapping[str, str] = field(kw_only=True)  # its environment variables
    watchdog: watchdog.Watchdog = field(kw_only=True)  # kills it if the harness is killed
    on_line: Callable[[str], None] = field(kw_only=True)  # called with each line of its output, in a separate thread

    def __post_init__(self) -> None:
        """Start it."""
        self._lock = Lock()  # guards _write_end
        self._read_end, self._write_end = os.pipe()  # _write_end is -1 once the process has ended
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter and a function of the user's
                self.command,
                cwd=self.folder,
                env=self.variables,
                stdin=subprocess.DEVNULL,
                stdout=self._write_end,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except BaseException:
            os.close(self._write_end)
            os.close(self._read_end)
            self.api.stop()
            raise
        self.pid = self._process.pid
        self.watchdog.watch(self.pid)
        self._reader = Thread(target=self._read, daemon=True)
        self._waiter = Thread(target=self._wait, daemon=True)
        self._reader.start()
        self._waiter.start()

    @property
    def alive(self) -> bool:
        """Whether it is running."""
        return self._process.returncode is None and not _is_ending(self.pid)

    def write(self, line: str) -> None:
        """Put a line of the harness among the function's lines, or after the last of them."""
        with self._lock:
            if self._write_end >= 0:
                os.write(self._write_end, f"{line}\n".encode())
                return
        self._reader.join(OUTPUT_SECONDS)
        self.on_line(line)

    def next_event(self, until: float) -> ProcessEvent | None:
        """Wait for its next event until a time of the monotonic clock; None: there was none."""
        try:
            return self.api.events.get(timeout=max(0.0, until - time.monotonic()))
        except Empty:
            return None

    def kill(self) -> None:
        """Kill it and its children; its last event is its end."""
        if self._process.returncode is None:  # after its end, the pid may belong to another process
            watchdog.end(self.pid)

    def join(self) -> None:
        """Wait until it has ended and its last line was read."""
        self._reader.join(EXIT_SECONDS)
        self._waiter.join(EXIT_SECONDS)

    def _wait(self) -> None:
        status = self._process.wait()
        watchdog.end(self.pid)  # its children end too
        self.watchdog.release(self.pid)
        with self._lock:
            os.close(self._write_end)
            self._write_end = -1
        self.api.events.put(Exit(status))
        self.api.stop()

    def _read(self) -> None:
        with os.fdopen(self._read_end, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self.on_line(line.rstrip("\r\n"))


def resident(pid: int) -> int | None:
    """Return a process's memory in MB; None if unknown."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_bytes().split()[1])
    except (OSError, IndexError, ValueError):
        return None
    return math.ceil(pages * os.sysconf("SC_PAGE_SIZE") / MB)


def peak(pid: int) -> int | None:
    """Return the peak of a process's memory in MB; None if unknown."""
    high = _status(pid).get("VmHWM")  # "high water mark", e.g. "51200 kB"
    if high is None:
        return None
    return math.ceil(int(high.split()[0]) / 1024)


def _is_ending(pid: int) -> bool:
    """Whether a process was killed or has exited, although its exit status was not read yet."""
    status = _status(pid)
    if not status:
        return False  # without /proc it is unknown
    pending = int(status.get("SigPnd", "0"), 16) | int(status.get("ShdPnd", "0"), 16)
    if pending & KILL:
        return True
    return "VmHWM" not in status  # a process that has exited has no memory


def _status(pid: int) -> dict[str, str]:
    """Return the fields of /proc/PID/status; {} if there is none."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        fields[name] = value.strip()
    return fields
