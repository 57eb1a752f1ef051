"""`demo --task`: a tool call that outlives its request. It reports progress, loses its worker, asks, and finishes.

Each worker is a process of the real Lambda runtime, and the demo kills one of them. Only the client's polls start
another.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TextIO

from mcp_functions.local.demo.rounds import Transcript, expect
from mcp_functions.local.harness import Harness
from mcp_functions.local.problems import DemoError
from mcp_functions.local.task_client import Refused, TaskClient
from mcp_functions.protocol.constants import WORKER

if TYPE_CHECKING:
    from collections.abc import Mapping

TOOL = "audit_year"
ARGUMENTS = {"year": 2026}
ANSWER = {"action": "accept", "content": {"write_off": True}}
ENDING = "2026 is audited: 15 cents remain."
KILL_AT = "auditing"
KILLED = "  ---- its worker is killed (kill -9); the lease runs out, and the next poll calls another ----"


def run(functions: Path, out: TextIO) -> None:
    """Call the tool as a client that supports tasks, and show the polls.

    Args:
        functions: the directory of functions, with `audit_year`.
        out: where to write.

    Raises:
        Problem: the user has to correct something first.
        DemoError: the task differed from the expected one.
    """
    with (
        TemporaryDirectory() as state_dir,
        Harness(functions, state_dir=Path(state_dir), runtime=True, on_log=lambda _folder, _line: None) as harness,
    ):
        demo = _Demo(harness, Transcript(out))
        client = TaskClient(harness.url, told=demo.show_poll)
        demo.write(f"A client that knows tasks calls {TOOL} at {harness.url}\n")
        try:
            task = client.call(TOOL, ARGUMENTS)
            demo.write(f"  at once: {task['taskId']}, {task['status']}")
            result = client.follow(task, demo.answer)
        except (Refused, KeyError) as error:
            raise DemoError(str(error)) from error
        demo.show_end(result)


class _Demo:
    """The transcript, and the worker that is killed."""

    def __init__(self, harness: Harness, transcript: Transcript) -> None:
        self._harness, self.write = harness, transcript.write
        self._last, self._killed, self._asked = "", 0, False

    def show_poll(self, task: Mapping[str, Any]) -> None:
        """Show a poll's result, if it is new, and kill the worker once."""
        message = task.get("statusMessage", "")
        line = f"  {task['status']}: {message}" if message else f"  {task['status']}"
        if line != self._last:
            self.write(line)
            self._last = line
        if not self._killed and KILL_AT in message:
            # a late start may have called a second worker; then the next poll tries again
            self._killed = self._harness.kill(f"{TOOL}{WORKER}", alone=True)
            if self._killed:
                self.write(KILLED)

    def answer(self, key: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer the question, and show it."""
        self.write(f"  it asks {key}: {request['params']['message']}")
        self.write("  answered: yes")
        self._asked = True
        return ANSWER

    def show_end(self, result: Mapping[str, Any]) -> None:
        """Check the result and the workers, and show them."""
        text = str(result["content"][0]["text"])
        workers = [one for one in self._harness.invocations if one.folder == f"{TOOL}{WORKER}"]
        killed = sum(bool(one.error) for one in workers)
        expected = text == ENDING and self._asked and killed
        expect(expected, f"it ended with {text!r} after {len(workers)} workers, {killed} of them killed")
        self.write(f"  {text}\n")
        self.write(
            f"{len(workers)} workers, {killed} of them killed: no month that was written down was audited again."
        )
