"""One process of a function: in a group of its own, its output line by line, its end told once.

The harness writes its own lines into the same pipe, so that they stand where they happened among those of the function.
"""

from __future__ import annotations

import os
import subprocess
from threading import Lock, Thread
from typing import TYPE_CHECKING

from mcp_functions.local.runtime import proc, watchdog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


LAST_WORDS_SECONDS = 2.0  # that a dead process's output is waited for: what left its group may hold the pipe open


class Process:
    """A running process, from its start to its end and not a moment longer."""

    def __init__(  # noqa: PLR0913 - what a process is started with
        self,
        command: Sequence[str],
        *,
        folder: Path,
        variables: Mapping[str, str],
        watched: watchdog.Warden,
        said: Callable[[str], None],
        ended: Callable[[int], None],
    ) -> None:
        """Start it.

        Args:
            command: to run.
            folder: to run it in.
            variables: its whole environment.
            watched: ends it should the harness be killed.
            said: called with each line of its output, in a thread of its own.
            ended: called once with its exit status, in a thread of its own, after its group is gone.

        """
        self._watched, self._said, self._ended = watched, said, ended
        self._lock = Lock()
        self._out, self._in = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter and a function of the user's own
                command,
                cwd=folder,
                env=variables,
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
        watched.watch(self.pid)
        self._threads = [Thread(target=target, daemon=True) for target in (self._read, self._wait)]
        for thread in self._threads:
            thread.start()

    @property
    def alive(self) -> bool:
        """Whether it runs at this very moment."""
        return self._process.returncode is None and not proc.is_ending(self.pid)

    def write(self, line: str) -> None:
        """Put a line of the harness's own among those of the function, or after the last of them."""
        with self._lock:
            if self._in >= 0:
                os.write(self._in, f"{line}\n".encode())
                return
        self._threads[0].join(LAST_WORDS_SECONDS)
        self._said(line)

    def memory(self) -> int | None:
        """Say the MB that it has now."""
        return proc.resident(self.pid)

    def peak(self) -> int | None:
        """Say the most MB that it ever had."""
        return proc.peak(self.pid)

    def kill(self) -> None:
        """End it, and what it started; `ended` says when."""
        if self._process.returncode is None:  # after that the number may be another's
            watchdog.end(self.pid)

    def join(self, seconds: float) -> None:
        """Wait until it is gone, and its last line was told."""
        for thread in self._threads:
            thread.join(seconds)

    def _wait(self) -> None:
        status = self._process.wait()
        watchdog.end(self.pid)  # what it started does not outlive it
        self._watched.release(self.pid)
        with self._lock:
            os.close(self._in)
            self._in = -1
        self._ended(status)

    def _read(self) -> None:
        with open(self._out, encoding="utf-8", errors="replace") as lines:  # noqa: PTH123 - a descriptor
            for line in lines:
                self._said(line.rstrip("\r\n"))
