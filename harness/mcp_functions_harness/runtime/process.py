"""One process of a function, with its Runtime API and its output, until it ends or is killed.

The harness writes its own lines (as START, END and REPORT) into the pipe of the output too, so they keep their order
among those of the function. Memory and state are read from /proc: systems other than Linux have none, and so no memory
limit.
"""

import math
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from queue import Empty
from threading import Lock, Thread

from mcp_functions_harness.runtime.api import Exit, ProcessEvent, RuntimeApi
from mcp_functions_harness.runtime.watchdog import Watchdog, kill_group

EXIT_SECONDS = 5.0  # longest wait for each thread, after the process was killed
OUTPUT_SECONDS = 2.0  # longest wait for the last output: a child may keep the pipe open


class Process:
    """A process in a process group of its own, so that its children are killed with it.

    Attributes:
        api: the Runtime API, which this process alone uses.
        output: passes on the lines of the process, and of the harness among them.
        pid: the number of the process and of its group.
        is_ready: whether its init has ended; `Sandbox` sets it.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        variables: Mapping[str, str],
        watchdog: Watchdog,
        on_line: Callable[[str], None],
    ) -> None:
        """Start the process in a folder, with these variables and the address of its Runtime API.

        The watchdog kills it if the harness is killed. `on_line` gets each line of the output, in any thread.
        """
        self.api = RuntimeApi()
        self.output = ProcessOutput(on_line)
        try:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env={**variables, "AWS_LAMBDA_RUNTIME_API": self.api.address},
                stdin=subprocess.DEVNULL,
                stdout=self.output.write_end,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except BaseException:
            self.output.close()
            self.output.join(EXIT_SECONDS)
            self.api.stop()
            raise
        self.pid = self._process.pid
        self.is_ready = False
        self._peak_memory = 0  # MB
        self._watchdog = watchdog
        self._watchdog.watch(self.pid)
        self._waiter = Thread(target=self._wait, daemon=True)
        self._waiter.start()

    @property
    def alive(self) -> bool:
        """Whether the process runs, and was not killed."""
        return self._process.returncode is None and not _is_ending(_status(self.pid))

    @property
    def peak_memory(self) -> int:
        """The most memory that the process has had, in MB; 0 if unknown. After its end, the last known."""
        if self._process.returncode is None:  # or its pid may be another process's
            kilobytes = _status(self.pid).get("VmHWM", "0 kB").split()[0]
            self._peak_memory = max(self._peak_memory, math.ceil(int(kilobytes) / 1024))
        return self._peak_memory

    def next_event(self, until: float) -> ProcessEvent | None:
        """Wait for the process's next event, until a time of the monotonic clock. Return None if there was none."""
        try:
            return self.api.events.get(timeout=max(0.0, until - time.monotonic()))
        except Empty:
            return None

    def kill(self) -> None:
        """Kill the process and its children; then its last event is an `Exit`."""
        if self._process.returncode is None:
            kill_group(self.pid)

    def join(self) -> None:
        """Wait until the process has ended and its last line was read."""
        self.output.join(EXIT_SECONDS)
        self._waiter.join(EXIT_SECONDS)

    def _wait(self) -> None:
        """Wait for the end of the process, and end what belongs to it."""
        status = self._process.wait()
        kill_group(self.pid)  # the children; while one of them lives, no other group gets this pid
        self._watchdog.release(self.pid)
        self.output.close()
        self.api.events.put(Exit(status))
        self.api.stop()


class ProcessOutput:
    """The pipe, and the thread that reads it. `write_end` is for the stdout and stderr of the process."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        """Open the pipe; the thread calls `on_line` with each line."""
        self._on_line = on_line
        self._lock = Lock()  # guards _is_closed
        self._is_closed = False
        read_end, self.write_end = os.pipe()
        self._reader = Thread(target=self._read, args=[read_end], daemon=True)
        self._reader.start()

    def write_line(self, line: str) -> None:
        """Write a line of the harness. After `close`, wait for the last line of the process, and call `on_line`."""
        with self._lock:
            if not self._is_closed:
                os.write(self.write_end, f"{line}\n".encode())
                return
        self.join(OUTPUT_SECONDS)
        self._on_line(line)

    def close(self) -> None:
        """Close the harness's end of the pipe, because the process has ended."""
        with self._lock:
            self._is_closed = True
            os.close(self.write_end)

    def join(self, seconds: float) -> None:
        """Wait until the last line was read, for some seconds at most."""
        self._reader.join(seconds)

    def _read(self, read_end: int) -> None:
        with os.fdopen(read_end, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._on_line(line.rstrip("\r\n"))


def _status(pid: int) -> dict[str, str]:
    """Return the fields of /proc/PID/status; {} if there is none."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    fields = [line.partition(":") for line in lines]
    return {name: value.strip() for name, _, value in fields}


def _is_ending(status: Mapping[str, str]) -> bool:
    """Whether a process was killed or has exited, although the waiter thread of `Process` has not seen its end yet."""
    if not status:
        return False  # the system has no /proc
    # proc(5): signals pending for the thread, and for the whole process, as hexadecimal bit sets
    pending = int(status.get("SigPnd", "0"), 16) | int(status.get("ShdPnd", "0"), 16)
    bit_of_sigkill = 1 << (signal.SIGKILL - 1)
    return bool(pending & bit_of_sigkill) or "VmHWM" not in status  # without memory, it has exited
