"""`demo --task`: a tool call becomes a task, its worker is killed, and another worker finishes it.

A task is a call whose work goes on after the response. A worker, a second Lambda of the function, does this work. Here
each worker is a process of the real Lambda runtime. It holds the task for a short time (a lease) and renews that. When
a worker was killed, its lease ends, and the client's next poll starts another worker.
"""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TextIO

from mcp_functions.protocol.constants import WORKER_SUFFIX
from mcp_functions.protocol.wire_types import InputRequest, InputResponse, ResultObject
from mcp_functions_harness.client.tasks import Refused, TaskClient
from mcp_functions_harness.demo.rounds import Transcript, expect
from mcp_functions_harness.harness import Harness
from mcp_functions_harness.problems import DemoError

TOOL = "audit_year"
ARGUMENTS = {"year": 2026}
ANSWER: InputResponse = {"action": "accept", "content": {"write_off": True}}
ENDING = "2026 is audited: 15 cents remain."
KILL_AT = "auditing"  # the worker is killed when the task's `statusMessage` has this word
KILLED = "  ---- its worker is killed (kill -9); the lease runs out, and the next poll calls another ----"


def run(functions: Path, out: TextIO) -> None:
    """Call the tool as a client that supports tasks, and show the polls."""
    with (
        TemporaryDirectory() as state_dir,
        Harness(functions, state_dir=Path(state_dir), runtime=True, on_log=lambda _folder, _line: None) as harness,
    ):
        transcript = Transcript(out)
        demo = _Demo(harness, transcript)
        client = TaskClient(harness.url, told=demo.show_poll)
        transcript.write(f"A client that supports tasks calls {TOOL} at {harness.url}\n")
        try:
            task = client.call(TOOL, ARGUMENTS)
            transcript.write(f"  at once: {task['taskId']}, {task['status']}")
            result = client.follow(task, demo.answer)
        except (Refused, KeyError) as error:
            raise DemoError(str(error)) from error
        demo.show_end(result)


@dataclass
class _Demo:
    """Shows the polls, kills the worker once, and answers the question."""

    harness: Harness
    transcript: Transcript
    last_line: str = ""  # the last status that was shown
    has_killed: bool = False  # whether a worker was killed
    has_answered: bool = False  # whether the task has asked its question

    def show_poll(self, task: ResultObject) -> None:
        """Show the status of the task, if it has changed, and kill a worker once."""
        message = task.get("statusMessage", "")
        line = f"  {task['status']}: {message}" if message else f"  {task['status']}"
        if line != self.last_line:
            self.transcript.write(line)
            self.last_line = line
        if not self.has_killed and KILL_AT in message:
            # Two workers may run if one started late. Then no worker is killed now, and the next poll tries again.
            self.has_killed = self.harness.kill_only_process(f"{TOOL}{WORKER_SUFFIX}")
            if self.has_killed:
                self.transcript.write(KILLED)

    def answer(self, key: str, request: InputRequest) -> InputResponse:
        """Answer the question, and show it."""
        self.transcript.write(f"  it asks {key}: {request['params']['message']}")
        self.transcript.write("  answered: yes")
        self.has_answered = True
        return ANSWER

    def show_end(self, result: ResultObject) -> None:
        """Check the result and the workers, and show them."""
        text = str(result["content"][0]["text"])
        worker = f"{TOOL}{WORKER_SUFFIX}"
        workers = [invocation for invocation in self.harness.invocations if invocation.folder == worker]
        killed = len([invocation for invocation in workers if invocation.error])
        is_expected = text == ENDING and self.has_answered and killed > 0
        expect(is_expected, f"it ended with {text!r} after {len(workers)} workers, {killed} of them killed")
        self.transcript.write(f"  {text}\n")
        self.transcript.write(
            f"{len(workers)} workers, {killed} of them killed: no month that was written down was audited again."
        )
