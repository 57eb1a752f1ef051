"""Shared by the demos: the call of `update_work_item`, round by round, and the transcript at the terminal.

A round is one request of the call: the first, or a later one with the answers to the questions of the round before.
"""

import contextlib
import io
import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO, TypeAlias

import click

from mcp_functions.protocol.wire_types import JSONObject, ResultObject
from mcp_functions_harness import banner, catalog
from mcp_functions_harness.demo.one_round import Call, Contents
from mcp_functions_harness.harness import Harness
from mcp_functions_harness.lambdas.service import Invocation
from mcp_functions_harness.problems import DemoError, Problem, first_line
from mcp_functions_harness.terminal.safe_text import write_styled

# Sends the next round of the call in a file, with answers by the key of their question; returns the result.
Send: TypeAlias = Callable[[Path, Contents], ResultObject]

TOOL = "update_work_item"
ARGUMENTS: JSONObject = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
ANSWERS: Contents = {"resolution": {"resolution": "Duplicate"}, "duplicate_of": {"duplicateOfId": 4301}}
ENDING = "Bug #4522 resolved as Duplicate of Bug #4301."
COUNT = 3  # how many rounds the call has
FIRST, LAST = 24, 6  # how many characters of a state are shown, from its start and its end


def expect(condition: object, otherwise: str) -> None:
    """Raise a DemoError with the text `otherwise` if the condition is false."""
    if not condition:
        raise DemoError(otherwise)


@contextlib.contextmanager
def stage() -> Iterator[Path]:
    """Give a temporary folder, hide what functions print, and turn an unexpected exception into a DemoError."""
    hidden = io.StringIO()
    with (
        contextlib.redirect_stdout(hidden),
        contextlib.redirect_stderr(hidden),
        tempfile.TemporaryDirectory() as folder,
    ):
        try:
            yield Path(folder)
        except Exception as error:
            cause: BaseException = error
            while isinstance(cause, BaseExceptionGroup):  # the official client raises groups
                cause = cause.exceptions[0]
            if isinstance(cause, DemoError | Problem):
                raise cause from error
            raise DemoError(first_line(cause)) from error


class Transcript:
    """Writes a conversation while it happens."""

    def __init__(self, out: TextIO) -> None:
        """Write to `out`; on a terminal headings are bold."""
        self._out = out

    def write(self, text: str) -> None:
        """Write a line."""
        click.echo(text, file=self._out)

    def heading(self, text: str) -> None:
        """Start a block."""
        write_styled(text, self._out, bold=True)

    def line(self, label: str, text: str) -> None:
        """Write a line with a label."""
        self.write(f"  {label:<8} {text}")

    def state(self, sealed: str) -> None:
        """Show the sealed state, which the client cannot read."""
        self.line("state", f"{sealed[:FIRST]}...{sealed[-LAST:]}  sealed, {len(sealed)} characters\n")


@dataclass
class Rounds:
    """Runs the rounds of one call. Between two rounds only the client's file is kept."""

    file: Path  # holds the Call
    transcript: Transcript
    invocations: list[Invocation] = field(default_factory=list, init=False)  # of the tool, one in each round

    def begin(self, functions: Path, harness: Harness) -> None:
        """Write the call into the file.

        Raises:
            Problem: catalog.json does not list the functions as they are.
        """
        if catalog.differences(catalog.read(functions), catalog.describe(harness.functions.values(), functions)):
            raise Problem(banner.STALE)
        self.file.write_text(json.dumps({"url": harness.url, "name": TOOL, "arguments": ARGUMENTS}), encoding="utf-8")

    def read_file(self) -> Call:
        """Read the file."""
        conversation: Call = json.loads(self.file.read_text(encoding="utf-8"))
        return conversation

    def run_round(self, send: Send, harness: Harness, client: str = "") -> ResultObject:
        """Send the next round with the answers to the questions of the round before; show it, and return its result."""
        answers = {key: ANSWERS[key] for key in self.read_file().get("inputRequests", ())}
        heading = f"Round {len(self.invocations) + 1}"
        self.transcript.heading(f"{heading}: {client}" if client else heading)
        self.transcript.line("client", f"tools/call {TOOL} {json.dumps(ARGUMENTS)}")
        for key, answer in answers.items():
            self.transcript.line("", f"  answers {key}: {json.dumps(answer)}")
        if self.invocations:
            self.transcript.line("", f"  carries the state of round {len(self.invocations)}")
        result = send(self.file, answers)
        invocation = [invocation for invocation in harness.invocations if invocation.folder == TOOL][-1]
        self.invocations.append(invocation)
        process = f" as pid {invocation.pid}" if invocation.pid else ""
        ran = f"local_{TOOL} ran {invocation.milliseconds:.1f} ms{process} and ended"
        self.transcript.line("Lambda", f"{ran}, request {invocation.request_id}")
        return result

    def show_questions(self, result: ResultObject) -> None:
        """Show the questions in a result, and check that the demo has answers to them."""
        expect("requestState" in result, f"round {len(self.invocations)} ended the call: {_text(result)}")
        unknown = result["inputRequests"].keys() - ANSWERS.keys()
        expect(not unknown, f"the demo has no answer to {', '.join(unknown)}")
        for key, request in result["inputRequests"].items():
            self.transcript.line("asks", f"{key}: {request['params']['message']}")
            for name, member in request["params"]["requestedSchema"]["properties"].items():
                choices = " | ".join(member["enum"]) if "enum" in member else member["type"]
                self.transcript.line("", f"  {name}: {choices}")

    def show_end(self, result: ResultObject, ending: str = "") -> None:
        """Check and show the last result, whose text ends with `ending`."""
        text = _text(result)
        is_expected = text.startswith(ENDING) and text.endswith(ending)
        expect(is_expected, f"the call ended with another result: {text}")
        request_ids = {invocation.request_id for invocation in self.invocations}
        expect(len(request_ids) == COUNT, "two rounds were one invocation")
        self.transcript.line("result", f"{text}\n")


def _text(result: ResultObject) -> str:
    if "requestState" in result:
        return "it asks again"
    return " ".join(block.get("text", "") for block in result["content"])
