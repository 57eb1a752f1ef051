"""The parts that two demos share: the call of `update_work_item`, and its rounds as the client's file keeps them."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_functions.local import banner, catalog
from mcp_functions.local.problems import DemoError, Problem, first_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_functions.local.demo.transcript import Transcript
    from mcp_functions.local.harness import Harness
    from mcp_functions.local.lambdas import Invocation

    Send = Callable[[Path, dict[str, Any]], dict[str, Any]]  # (the client's file, answers by key) -> result

TOOL = "update_work_item"
ARGUMENTS: dict[str, Any] = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
ANSWERS: dict[str, dict[str, Any]] = {
    "resolution": {"resolution": "Duplicate"},
    "duplicate_of": {"duplicateOfId": 4301},
}
ENDING = "Bug #4522 resolved as Duplicate of Bug #4301."
COUNT = 3  # of rounds


def expect(condition: object, otherwise: str) -> None:
    """Raise a DemoError with the text `otherwise` if the condition is false."""
    if not condition:
        raise DemoError(otherwise)


@contextlib.contextmanager
def stage() -> Iterator[Path]:
    """Hide the functions' logs, give a temporary folder, and report every unexpected exception as a DemoError."""
    quiet = io.StringIO()
    with (
        contextlib.redirect_stdout(quiet),
        contextlib.redirect_stderr(quiet),
        tempfile.TemporaryDirectory() as folder,
    ):
        try:
            yield Path(folder)
        except Exception as error:
            cause: BaseException = error
            while isinstance(cause, BaseExceptionGroup):
                cause = cause.exceptions[0]
            if isinstance(cause, DemoError | Problem):
                raise cause from error
            raise DemoError(first_line(cause)) from error


@dataclass
class Rounds:
    """The rounds of one call. Between two of them only the client's file is kept."""

    file: Path  # url, name and arguments; after a round also the questions and the state
    transcript: Transcript
    invocations: list[Invocation] = field(default_factory=list, init=False)

    def begin(self, functions: Path, harness: Harness) -> None:
        """Write the call into the file.

        Raises:
            Problem: catalog.json does not list the functions as they are.
        """
        if catalog.differences(catalog.read(functions), catalog.describe(harness.functions.values())):
            raise Problem(banner.STALE)
        self.file.write_text(json.dumps({"url": harness.url, "name": TOOL, "arguments": ARGUMENTS}), encoding="utf-8")

    def kept(self) -> dict[str, Any]:
        """Read the file."""
        kept: dict[str, Any] = json.loads(self.file.read_text(encoding="utf-8"))
        return kept

    def hold(self, number: int, heading: str, send: Send, harness: Harness) -> dict[str, Any]:
        """Send one round with the answers to the questions of the last, show it, and return its result."""
        questions = self.kept().get("inputRequests") or {}
        answers = {key: ANSWERS[key] for key in questions}
        self.transcript.heading(heading)
        self.transcript.call(TOOL, ARGUMENTS, answers, number - 1)
        result = send(self.file, answers)
        self.invocations.append([one for one in harness.invocations if one.folder == TOOL][-1])
        self.transcript.invocation(self.invocations[-1])
        return result

    def show_questions(self, number: int, result: dict[str, Any]) -> None:
        """Show what a round asks."""
        expect("requestState" in result, f"round {number} ended the call: {_text(result)}")
        unknown = result["inputRequests"].keys() - ANSWERS.keys()
        expect(not unknown, f"the demo has no answer to {', '.join(unknown)}")
        for key, request in result["inputRequests"].items():
            self.transcript.question(key, request["params"]["message"], request["params"]["requestedSchema"])

    def show_end(self, result: dict[str, Any], ending: str = "") -> None:
        """Show the last result, which ends with `ending`."""
        text = _text(result)
        as_expected = text.startswith(ENDING) and text.endswith(ending)
        expect(as_expected, f"the call ended with another result: {text}")
        expect(len({one.request_id for one in self.invocations}) == COUNT, "two rounds were one invocation")
        self.transcript.result(text)


def _text(result: dict[str, Any]) -> str:
    if "requestState" in result:
        return "it asks again"
    return " ".join(block.get("text", "") for block in result["content"])
