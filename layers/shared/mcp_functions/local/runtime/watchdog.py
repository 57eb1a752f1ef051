"""A process that kills the harness's processes if the harness itself is killed.

It reads "+<group>" and "-<group>" from its stdin. When stdin ends, it kills the groups that are left. A bare
interpreter runs this file as a script, so it imports nothing of the package.
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
        # if the watchdog was killed, processes end only with an orderly stop
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
        (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    for group in groups:
        end(group)


if __name__ == "__main__":
    main()
