"""A process that kills the harness's processes if the harness itself is killed.

    line on its stdin    meaning
    +<group>             a process group has started: watch it
    -<group>             it has ended: forget it
    (stdin ends)         the harness has ended: kill the groups that are left

A bare interpreter runs this file as a script, so it imports nothing of the package.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from threading import Lock

COMMAND = (sys.executable, "-I", "-S", __file__)  # without site-packages it starts in a few milliseconds


class Watchdog:
    """Watches process groups until `close`."""

    def __init__(self) -> None:
        """Start the process, out of reach of the terminal's Ctrl-C."""
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter, this file
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self._lock = Lock()

    def watch(self, group: int) -> None:
        """Kill this group if the harness ends without `release`."""
        self._write(f"+{group}\n")

    def release(self, group: int) -> None:
        """Stop to watch a group that has ended, because its number may be used again."""
        self._write(f"-{group}\n")

    def close(self) -> None:
        """Close its stdin, so that the watchdog ends."""
        with self._lock, contextlib.suppress(OSError):
            self._process.communicate()

    def _write(self, line: str) -> None:
        # An error means that the watchdog was killed. Then an orderly stop of the harness still ends all processes.
        with self._lock, contextlib.suppress(OSError, ValueError):
            if self._process.stdin:
                self._process.stdin.write(line.encode())
                self._process.stdin.flush()


def end(group: int) -> None:
    """Kill a process group, if it is still there."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def main() -> None:
    """Watch until stdin ends."""
    groups: set[int] = set()
    for line in sys.stdin:
        group = int(line[1:])
        if line.startswith("+"):
            groups.add(group)
        else:
            groups.discard(group)
    for group in groups:
        end(group)


if __name__ == "__main__":
    main()
