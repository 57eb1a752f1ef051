"""`demo --task`: a call that outlives its request. It says how far it is, loses its worker, asks, and comes to its end.

Each worker is a process of the real Lambda runtime, and one of them is killed in the middle of the work. Nothing looks
after it but the client's own polls.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

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


def run(functions: Path, out: TextIO, *, runtime: bool = True) -> None:  # noqa: ARG001 - as the other demos
    """Call the tool as a client that knows tasks, and show what it hears.

    Args:
        functions: the directory of functions, with `audit_year` in it.
        out: where to write.
        runtime: always; there is no process to kill otherwise.

    Raises:
        Problem: the user has to put something right first.
        DemoError: the task went another way.

    """
    with (
        tempfile.TemporaryDirectory() as state_dir,
        Harness(functions, state_dir=Path(state_dir), runtime=True, on_log=lambda _folder, _line: None) as harness,
    ):
        demo = _Demo(harness, out)
        client = TaskClient(harness.url, told=demo.told)
        demo.say(f"A client that knows tasks calls {TOOL} at {harness.url}\n")
        try:
            task = client.call(TOOL, ARGUMENTS)
            demo.say(f"  at once: {task['taskId']}, {task['status']}")
            result = client.follow(task, demo.answer)
        except (Refused, KeyError) as error:
            raise DemoError(str(error)) from error
        demo.ended(result)


class _Demo:
    """What is shown, and the one worker that is killed."""

    def __init__(self, harness: Harness, out: TextIO) -> None:
        self._harness, self._out = harness, out
        self._last, self._killed, self._asked = "", 0, False

    def say(self, line: str) -> None:
        self._out.write(f"{line}\n")
        self._out.flush()

    def told(self, task: Mapping[str, Any]) -> None:
        """Show what a poll brought, if it is news."""
        said = f"  {task['status']}" + (f": {task['statusMessage']}" if "statusMessage" in task else "")
        if said != self._last:
            self.say(said)
            self._last = said
        if not self._killed and KILL_AT in task.get("statusMessage", ""):
            # where two run, one was called in vain, because the other took its time to come: the next poll will see
            self._killed = self._harness.kill(f"{TOOL}{WORKER}", alone=True)
            if self._killed:
                self.say(
                    "  ---- its worker is killed (kill -9); the lease runs out, and the next poll calls another ----"
                )

    def answer(self, key: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer the question, and show it."""
        self.say(f"  it asks {key}: {request['params']['message']}")
        self.say("  answered: yes")
        self._asked = True
        return ANSWER

    def ended(self, result: Mapping[str, Any]) -> None:
        """Show the result, if all went as it should.

        Raises:
            DemoError: it did not.

        """
        text = str(result["content"][0]["text"])
        workers = [one for one in self._harness.invocations if one.folder == f"{TOOL}{WORKER}"]
        dead = [one for one in workers if one.error]
        if (text, self._asked) != (ENDING, True) or not dead:
            surprise = f"it ended with {text!r} after {len(workers)} workers, {len(dead)} of them killed"
            raise DemoError(surprise)
        self.say(f"  {text}\n")
        self.say(
            f"{len(workers)} workers, {len(dead)} of them killed: no month that was written down was audited again."
        )
