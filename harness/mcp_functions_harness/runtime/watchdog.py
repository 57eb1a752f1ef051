"""A process that kills the harness's processes if the harness itself is killed.

    line on its stdin    meaning
    +<group>             a process group has started: watch the group
    -<group>             the group has ended: forget it
    (stdin ends)         the harness has ended: kill the groups that are left

A group is named by the pid of its first process.

A bare interpreter runs this file as a script, so it imports nothing of the package.
"""

import contextlib
import os
import signal
import subprocess
import sys
from threading import Lock

COMMAND = (sys.executable, "-I", "-S", __file__)  # without site-packages it starts faster


class Watchdog:
    """The harness's side: starts the watching process, and tells it about groups until `close`."""

    def __init__(self) -> None:
        """Start the watching process, in a session of its own: Ctrl-C in the terminal does not reach it."""
        self._process = subprocess.Popen(
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self._lock = Lock()

    def watch(self, group: int) -> None:
        """Have this group killed if the harness ends before `release`."""
        self._write(f"+{group}\n")

    def release(self, group: int) -> None:
        """Forget a group that has ended: the system may give its number to another process."""
        self._write(f"-{group}\n")

    def close(self) -> None:
        """End the watching process, by the end of its stdin."""
        with self._lock, contextlib.suppress(OSError):
            self._process.communicate()

    def _write(self, line: str) -> None:
        # OSError and ValueError (the pipe is closed) mean that the watching process was killed. An orderly stop of the
        # harness ends all processes without it.
        with self._lock, contextlib.suppress(OSError, ValueError):
            if self._process.stdin:
                self._process.stdin.write(line.encode())
                self._process.stdin.flush()


def kill_group(group: int) -> None:
    """Kill all processes of a group, if it still exists."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def main() -> None:
    """Run the watching process: read groups until stdin ends, then kill those that are left."""
    groups: set[int] = set()
    for line in sys.stdin:
        group = int(line[1:])
        if line.startswith("+"):
            groups.add(group)
        else:
            groups.discard(group)
    for group in groups:
        kill_group(group)


if __name__ == "__main__":
    main()
