"""The output of a process: a pipe into which the process and the harness write.

The harness writes its own lines (START, END, REPORT) into the pipe too, so they keep their order among the function's.
"""

import os
from collections.abc import Callable
from threading import Lock, Thread

# Longest wait for the output of an ended process. A child that left its process group may keep the pipe open.
OUTPUT_SECONDS = 2.0


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
