"""One process of a function, in its own process group.

    reader thread    reads the output of the process, and calls `on_line` with each line
    waiter thread    waits for the end of the process, and kills the children that it left behind

The harness writes its own lines (START, END, REPORT) into the pipe of the output, so that they keep their order among
the function's lines. The memory is read from /proc; systems other than Linux have none, and so no memory limit.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from queue import Empty
from threading import Lock, Thread
from typing import TYPE_CHECKING

from mcp_functions.local.runtime.api import Exit
from mcp_functions.local.runtime.watchdog import kill_group

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.local.runtime.api import ProcessEvent, RuntimeApi
    from mcp_functions.local.runtime.watchdog import Watchdog

MB = 1024 * 1024
SIGKILL_BIT = 1 << (signal.SIGKILL - 1)  # in the sets of pending signals in /proc
EXIT_SECONDS = 5.0  # longest wait for each thread, after the process was killed
# Longest wait for the output of an ended process. A child that left its process group may keep the pipe open.
OUTPUT_SECONDS = 2.0


@dataclass(eq=False, kw_only=True)
class Process:
    """A process, started when the object is made. Its group has the process's pid as its number.

    Attributes:
        command: the program and its arguments.
        api: the Runtime API that this process alone uses; it stops when the process ends.
        folder: the working directory.
        variables: the environment variables.
        watchdog: kills the process if the harness is killed.
        on_line: called with each line of the output. The reader thread calls it, and after the process's end also the
            thread that calls `write_line`.
    """

    command: Sequence[str]
    api: RuntimeApi
    folder: Path
    variables: Mapping[str, str]
    watchdog: Watchdog
    on_line: Callable[[str], None]

    def __post_init__(self) -> None:
        """Start the process and its two threads."""
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
        """Whether the process runs, and was not killed."""
        return self._process.returncode is None and not _is_ending(self.pid)

    def write_line(self, line: str) -> None:
        """Write a line of the harness into the output; after the process's end, pass it on behind the last line."""
        with self._lock:
            if self._write_end >= 0:
                os.write(self._write_end, f"{line}\n".encode())
                return
        self._reader.join(OUTPUT_SECONDS)
        self.on_line(line)

    def next_event(self, until: float) -> ProcessEvent | None:
        """Wait for the process's next event, until a time of the monotonic clock. Return None if there was none."""
        try:
            return self.api.events.get(timeout=max(0.0, until - time.monotonic()))
        except Empty:
            return None

    def kill(self) -> None:
        """Kill the process and its children; then its last event is an `Exit`."""
        if self._process.returncode is None:  # after its end, the pid may belong to another process
            kill_group(self.pid)

    def join(self) -> None:
        """Wait until the process has ended and its last line was read."""
        self._reader.join(EXIT_SECONDS)
        self._waiter.join(EXIT_SECONDS)

    def _wait(self) -> None:
        status = self._process.wait()
        kill_group(self.pid)  # the children; a number is not given to another process while its group has members
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


def resident_memory(pid: int) -> int | None:
    """Return the memory that a process has now, in MB; None if unknown."""
    try:
        _total, resident_pages, *_others = Path(f"/proc/{pid}/statm").read_bytes().split()
        pages = int(resident_pages)
    except (OSError, ValueError):
        return None
    return math.ceil(pages * os.sysconf("SC_PAGE_SIZE") / MB)


def peak_memory(pid: int) -> int | None:
    """Return the most memory that a process has had, in MB; None if unknown."""
    high = _status(pid).get("VmHWM")  # proc(5): the "high water mark", e.g. "51200 kB"
    if high is None:
        return None
    return math.ceil(int(high.split()[0]) / 1024)


def _is_ending(pid: int) -> bool:
    """Whether a process was killed or has exited, although the waiter thread has not seen its end yet."""
    status = _status(pid)
    if not status:
        return False  # the system has no /proc
    # proc(5): signals pending for the thread, and for the whole process, as hexadecimal bit sets
    pending = int(status.get("SigPnd", "0"), 16) | int(status.get("ShdPnd", "0"), 16)
    if pending & SIGKILL_BIT:
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
