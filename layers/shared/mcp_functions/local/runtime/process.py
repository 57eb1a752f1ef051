"""One process of a function, with its Runtime API and its output, until it ends or is killed."""

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from queue import Empty
from threading import Thread

from mcp_functions.local.runtime.api import Exit, ProcessEvent, RuntimeApi
from mcp_functions.local.runtime.process_output import ProcessOutput
from mcp_functions.local.runtime.process_status import is_ending
from mcp_functions.local.runtime.watchdog import Watchdog, kill_group

EXIT_SECONDS = 5.0  # longest wait for each thread, after the process was killed


class Process:
    """A process in a process group of its own, so that its children are killed with it.

    Attributes:
        api: the Runtime API, which this process alone uses.
        output: passes on the lines of the process, and of the harness among them.
        pid: the number of the process and of its group.
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
        """Start the process.

        Args:
            command: the program and its arguments.
            folder: the working directory.
            variables: the environment variables, without the address of the Runtime API.
            watchdog: kills the process if the harness is killed.
            on_line: called with each line of the output, in any thread.
        """
        self.api = RuntimeApi()
        self.output = ProcessOutput(on_line)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter and a function of the user's
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
        self._watchdog = watchdog
        self._watchdog.watch(self.pid)
        self._waiter = Thread(target=self._wait, daemon=True)
        self._waiter.start()

    @property
    def alive(self) -> bool:
        """Whether the process runs, and was not killed."""
        return self._process.returncode is None and not is_ending(self.pid)

    def next_event(self, until: float) -> ProcessEvent | None:
        """Wait for the process's next event, until a time of the monotonic clock. Return None if there was none."""
        try:
            return self.api.events.get(timeout=max(0.0, until - time.monotonic()))
        except Empty:
            return None

    def kill(self) -> None:
        """Kill the process and its children; then its last event is an `Exit`."""
        if self._process.returncode is None:  # after its end, the system may give its pid to another process
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
