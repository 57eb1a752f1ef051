"""Shared by the demos: the call of `update_work_item`, round by round, and the transcript at the terminal.

A round is one request of the call: the first, or a later one with the answers to the questions of the round before.
"""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from mcp_functions.local import banner, catalog
from mcp_functions.local.problems import DemoError, Problem, first_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mcp_functions.local.harness import Harness
    from mcp_functions.local.lambdas.service import Invocation

    # Sends the next round of the call in a file, with answers by the key of their question; returns the result.
    Send = Callable[[Path, dict[str, Any]], dict[str, Any]]

TOOL = "update_work_item"
ARGUMENTS: dict[str, Any] = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
ANSWERS: dict[str, dict[str, Any]] = {  # the content of each form, by the key of its question
    "resolution": {"resolution": "Duplicate"},
    "duplicate_of": {"duplicateOfId": 4301},
}
ENDING = "Bug #4522 resolved as Duplicate of Bug #4301."
COUNT = 3  # how many rounds the call has
# how many characters of a state are shown
FIRST = 24  # from its start
LAST = 6  # from its end


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
        click.secho(text, file=self._out, bold=True)

    def line(self, label: str, text: str) -> None:
        """Write a line with a label."""
        self.write(f"  {label:<8} {text}")

    def call(self, tool: str, arguments: Mapping[str, Any], answers: Mapping[str, Any], state_of: int) -> None:
        """Show a round's request: the answers by key, and which round's state the client returns (0: none)."""
        self.line("client", f"tools/call {tool} {json.dumps(arguments)}")
        for key, answer in answers.items():
            self.line("", f"  answers {key}: {json.dumps(answer)}")
        if state_of:
            self.line("", f"  carries the state of round {state_of}")

    def invocation(self, invocation: Invocation) -> None:
        """Show the Lambda invocation that answered."""
        process = f" as pid {invocation.pid}" if invocation.pid else ""
        ran = f"local_{invocation.folder} ran {invocation.milliseconds:.1f} ms{process} and ended"
        self.line("Lambda", f"{ran}, request {invocation.request_id}")

    def question(self, key: str, message: str, schema: Mapping[str, Any]) -> None:
        """Show one question and its form."""
        self.line("asks", f"{key}: {message}")
        for name, part in schema["properties"].items():
            choices = " | ".join(part["enum"]) if "enum" in part else part["type"]
            self.line("", f"  {name}: {choices}")

    def state(self, sealed: str) -> None:
        """Show the sealed state, which the client cannot read."""
        self.line("state", f"{sealed[:FIRST]}...{sealed[-LAST:]}  sealed, {len(sealed)} characters\n")

    def result(self, text: str) -> None:
        """Show the result of the call."""
        self.line("result", f"{text}\n")

    def refusal(self, round_: int, position: int, code: int, message: str) -> None:
        """Show a state with one changed character, and the server's error."""
        self.heading("An attacker changes the state")
        self.line("client", f"sends round {round_} again, with character {position} of the state changed")
        self.line("refused", f"{code} {message}\n")


@dataclass
class Rounds:
    """Runs the rounds of one call. Between two rounds only the client's file is kept."""

    file: Path  # has the URL, the tool's name and its arguments; after a round also its questions and its state
    transcript: Transcript
    invocations: list[Invocation] = field(default_factory=list, init=False)  # of the tool, one in each round

    def begin(self, functions: Path, harness: Harness) -> None:
        """Write the call into the file.

        Raises:
            Problem: catalog.json does not list the functions as they are.
        """
        if catalog.differences(catalog.read(functions), catalog.describe(harness.functions.values())):
            raise Problem(banner.STALE)
        self.file.write_text(json.dumps({"url": harness.url, "name": TOOL, "arguments": ARGUMENTS}), encoding="utf-8")

    def read_file(self) -> dict[str, Any]:
        """Read the file."""
        conversation: dict[str, Any] = json.loads(self.file.read_text(encoding="utf-8"))
        return conversation

    def run_round(self, number: int, heading: str, send: Send, harness: Harness) -> dict[str, Any]:
        """Send one round with the answers to the questions of the round before; show it, and return its result."""
        questions = self.read_file().get("inputRequests") or {}
        answers = {key: ANSWERS[key] for key in questions}
        self.transcript.heading(heading)
        self.transcript.call(TOOL, ARGUMENTS, answers, number - 1)
        result = send(self.file, answers)
        invocations = [invocation for invocation in harness.invocations if invocation.folder == TOOL]
        self.invocations.append(invocations[-1])
        self.transcript.invocation(invocations[-1])
        return result

    def show_questions(self, number: int, result: dict[str, Any]) -> None:
        """Show the questions in a result, and check that the demo has answers to them."""
        expect("requestState" in result, f"round {number} ended the call: {_text(result)}")
        unknown = result["inputRequests"].keys() - ANSWERS.keys()
        expect(not unknown, f"the demo has no answer to {', '.join(unknown)}")
        for key, request in result["inputRequests"].items():
            self.transcript.question(key, request["params"]["message"], request["params"]["requestedSchema"])

    def show_end(self, result: dict[str, Any], ending: str = "") -> None:
        """Check and show the last result, whose text ends with `ending`."""
        text = _text(result)
        is_expected = text.startswith(ENDING) and text.endswith(ending)
        expect(is_expected, f"the call ended with another result: {text}")
        request_ids = {invocation.request_id for invocation in self.invocations}
        expect(len(request_ids) == COUNT, "two rounds were one invocation")
        self.transcript.result(text)


def _text(result: dict[str, Any]) -> str:
    if "requestState" in result:
        return "it asks again"
    return " ".join(block.get("text", "") for block in result["content"])
