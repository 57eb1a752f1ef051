"""`demo`: the official Python client holds a conversation of three rounds with `update_work_item`.

The loop is driven round by round, so that a reader sees what travels: the question, the answer, and the sealed state
that the client only carries. At the end a state with one changed character is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from mcp import Client, MCPError
from mcp.types import CallToolResult, ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult

from mcp_functions.local import banner, catalog
from mcp_functions.local.demo.transcript import Page
from mcp_functions.local.harness import Harness
from mcp_functions.local.problems import DemoError, Problem, first_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_functions.local.lambdas import Invocation

TOOL = "update_work_item"
ARGUMENTS: dict[str, Any] = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
ANSWERS: dict[str, dict[str, Any]] = {
    "resolution": {"resolution": "Duplicate"},
    "duplicate_of": {"duplicateOfId": 4301},
}
ENDING = "Bug #4522 resolved as Duplicate of Bug #4301."
ROUNDS = 3
REFUSAL = -32602
SECONDS = 60


def run(functions: Path, out: TextIO, *, runtime: bool = False) -> None:
    """Hold the conversation and show it.

    Args:
        functions: the directory of functions, with `update_work_item` in it.
        out: where to write.
        runtime: a process of the real Lambda runtime for every round.

    Raises:
        Problem: the user has to put something right first.
        DemoError: the conversation went another way.

    """
    quiet = io.StringIO()  # the functions' own logs would stand between the lines
    with (
        contextlib.redirect_stdout(quiet),
        contextlib.redirect_stderr(quiet),
        tempfile.TemporaryDirectory() as state_dir,
        Harness(functions, state_dir=Path(state_dir), runtime=runtime, reuse=False) as harness,
    ):
        if catalog.differences(catalog.read(functions), catalog.describe(harness.functions.values())):
            raise Problem(banner.STALE)
        try:
            asyncio.run(asyncio.wait_for(_converse(harness, Page(out)), SECONDS))
        except Exception as error:
            cause = _cause(error)
            raise cause if isinstance(cause, DemoError) else DemoError(first_line(cause)) from error


def _cause(error: BaseException) -> BaseException:
    return _cause(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


async def _converse(harness: Harness, page: Page) -> None:
    page.say(f"The official Python client calls {TOOL} at {harness.url}\n")
    async with Client(harness.url, mode="2026-07-28", elicitation_callback=_declared) as client:
        conversation = _Conversation(client, harness, page)
        for number in range(1, ROUNDS):
            await conversation.asks(number)
        await conversation.ends()
        await conversation.tampered()
    page.say(f"{ROUNDS} rounds, {_counted(conversation.invocations)}, and nothing kept on the server between them.")


def _counted(invocations: Sequence[Invocation]) -> str:
    processes = {invocation.pid for invocation in invocations} - {None}
    _expect(len({invocation.request_id for invocation in invocations}) == ROUNDS, "two rounds were one invocation")
    _expect(len(processes) in {0, ROUNDS}, "two rounds were one process")
    return f"{ROUNDS} processes" if processes else f"{ROUNDS} invocations"


async def _declared(context: object, params: object) -> ElicitResult:  # noqa: ARG001 - the client's signature
    return ElicitResult(action="cancel")  # never called: having it declares the capability, and the demo answers itself


class _Conversation:
    """What the client remembers between two rounds: the answers to give next, and the state it carries."""

    def __init__(self, client: Client, harness: Harness, page: Page) -> None:
        self._client, self._harness, self._page = client, harness, page
        self._answers: dict[str, ElicitResult] = {}
        self._state: str | None = None
        self.invocations: list[Invocation] = []

    async def asks(self, number: int) -> None:
        result = await self._round(number)
        if not isinstance(result, InputRequiredResult):
            surprise = f"round {number} ended the call: {_text(result)}"
            raise DemoError(surprise)
        asked = result.input_requests or {}
        for key, request in asked.items():
            params = request.params if isinstance(request, ElicitRequest) else None
            if key not in ANSWERS or not isinstance(params, ElicitRequestFormParams):
                surprise = f"nobody knows an answer to {key}"
                raise DemoError(surprise)
            self._page.asked(key, params.message, params.requested_schema)
        self._answers = {key: ElicitResult(action="accept", content=ANSWERS[key]) for key in asked}
        self._state = result.request_state or ""
        self._page.state(self._state)

    async def ends(self) -> None:
        result = await self._round(ROUNDS)
        text = _text(result)
        _expect(text.startswith(ENDING), f"the call did not end as it should: {text}")
        self._page.result(text)

    async def tampered(self) -> None:
        state = self._state or ""
        at = len(state) // 2
        changed = state[:at] + ("B" if state[at : at + 1] == "A" else "A") + state[at + 1 :]
        try:
            await self._call(changed)
        except MCPError as error:
            _expect(error.code == REFUSAL, f"a changed state was answered with {error.code}")
            self._page.refused(ROUNDS, at, error.code, error.message)
            return
        surprise = "a changed state was accepted"
        raise DemoError(surprise)

    async def _round(self, number: int) -> CallToolResult | InputRequiredResult:
        self._page.head(f"Round {number}")
        self._page.sent(TOOL, ARGUMENTS, {key: given.content for key, given in self._answers.items()}, number - 1)
        result = await self._call(self._state)
        ran = [invocation for invocation in self._harness.invocations if invocation.folder == TOOL]
        self.invocations.append(ran[-1])
        self._page.ran(ran[-1])
        return result

    async def _call(self, state: str | None) -> CallToolResult | InputRequiredResult:
        return await self._client.session.call_tool(
            TOOL, ARGUMENTS, input_responses=dict(self._answers) or None, request_state=state, allow_input_required=True
        )


def _text(result: CallToolResult | InputRequiredResult) -> str:
    if isinstance(result, InputRequiredResult):
        return "it asks again"
    return " ".join(getattr(block, "text", "") for block in result.content)


def _expect(truth: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not truth:
        raise DemoError(otherwise)
