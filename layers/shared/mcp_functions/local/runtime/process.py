"""One process of a function, in its own process group. Its output is read line by line.

The harness writes its own lines into the same pipe, so that they keep their order among the function's lines.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import TYPE_CHECKING

from mcp_functions.local.runtime import proc, watchdog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

OUTPUT_SECONDS = 2.0  # for the output of an ended process: a child that left its group may keep the pipe open


@dataclass(eq=False)
class Process:
    """A running process, started when the object is made."""

    command: Sequence[str]  # to run
    folder: Path = field(kw_only=True)  # its working directory
    variables: Mapping[str, str] = field(kw_only=True)  # its whole environment
    watchdog: watchdog.Watchdog = field(kw_only=True)  # kills it if the harness is killed
    on_line: Callable[[str], None] = field(kw_only=True)  # called with each line of its output, in a separate thread
    # called with its exit status, in a separate thread, after its group has ended
    on_exit: Callable[[int], None] = field(kw_only=True)

    def __post_init__(self) -> None:
        """Start it."""
        self._lock = Lock()
        self._out, self._in = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter and a function of the user's
                self.command,
                cwd=self.folder,
                env=self.variables,
                stdin=subprocess.DEVNULL,
                stdout=self._in,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError:
            os.close(self._in)
            os.close(self._out)
            raise
        self.pid = self._process.pid
        self.watchdog.watch(self.pid)
        self._threads = [Thread(target=target, daemon=True) for target in (self._read, self._wait)]
        for thread in self._threads:
            thread.start()

    @property
    def alive(self) -> bool:
        """Whether it is running."""
        return self._process.returncode is None and not proc.is_ending(self.pid)

    def write(self, line: str) -> None:
        """Put a line of the harness among the function's lines, or after the last of them."""
        with self._lock:
            if self._in >= 0:
                os.write(self._in, f"{line}\n".encode())
                return
        self._threads[0].join(OUTPUT_SECONDS)
        self.on_line(line)

    def memory(self) -> int | None:
        """Return its memory in MB."""
        return proc.resident(self.pid)

    def peak(self) -> int | None:
        """Return the peak of its memory in MB."""
        return proc.peak(self.pid)

    def kill(self) -> None:
        """Kill it and its children; `on_exit` reports the end."""
        if self._process.returncode is None:  # later the pid may be another process's
            watchdog.end(self.pid)

    def join(self, seconds: float) -> None:
        """Wait until it has ended and its last line was read."""
        for thread in self._threads:
            thread.join(seconds)

    def _wait(self) -> None:
        status = self._process.wait()
        watchdog.end(self.pid)  # its children end too
        self.watchdog.release(self.pid)
        with self._lock:
            os.close(self._in)
            self._in = -1
        self.on_exit(status)

    def _read(self) -> None:
        with os.fdopen(self._out, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self.on_line(line.rstrip("\r\n"))
