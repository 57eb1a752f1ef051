"""`demo`: the official Python client holds a conversation of three rounds with `update_work_item`.

The demo runs the client round by round, to show the question, the answer, and the sealed state that the client returns.
At the end the server refuses a state with one changed character.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TextIO

from mcp import Client, MCPError
from mcp.types import CallToolResult, ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult

from mcp_functions.local.demo.expectations import ANSWERS, ARGUMENTS, ENDING, ROUNDS, TOOL, check_catalog, expect, stage
from mcp_functions.local.demo.one_round import decline_all
from mcp_functions.local.demo.transcript import Transcript
from mcp_functions.local.harness import Harness
from mcp_functions.local.problems import DemoError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mcp_functions.local.lambdas import Invocation

INVALID_STATE = -32602
SECONDS = 60


def run(functions: Path, out: TextIO, *, runtime: bool = False) -> None:
    """Hold the conversation and show it.

    Args:
        functions: the directory of functions, with `update_work_item`.
        out: where to write.
        runtime: run each round in a process of the real Lambda runtime.

    Raises:
        Problem: the user has to correct something first.
        DemoError: the conversation differed from the expected one.
    """
    with stage() as state_dir, Harness(functions, state_dir=state_dir, runtime=runtime, reuse=False) as harness:
        check_catalog(functions, harness)
        asyncio.run(asyncio.wait_for(_converse(harness, Transcript(out)), SECONDS))


async def _converse(harness: Harness, transcript: Transcript) -> None:
    transcript.write(f"The official Python client calls {TOOL} at {harness.url}\n")
    async with Client(harness.url, mode="2026-07-28", elicitation_callback=decline_all) as client:
        conversation = _Conversation(client, harness, transcript)
        for number in range(1, ROUNDS):
            await conversation.answer_questions(number)
        await conversation.finish()
        await conversation.send_changed_state()
    count = _distinct(conversation.invocations)
    transcript.write(f"{ROUNDS} rounds, {count}, and nothing kept on the server between them.")


def _distinct(invocations: Sequence[Invocation]) -> str:
    processes = {invocation.pid for invocation in invocations} - {None}
    expect(len({invocation.request_id for invocation in invocations}) == ROUNDS, "two rounds were one invocation")
    expect(len(processes) in {0, ROUNDS}, "two rounds were one process")
    return f"{ROUNDS} processes" if processes else f"{ROUNDS} invocations"


class _Conversation:
    """The client between two rounds: the answers that it will give, and the state that it will return."""

    def __init__(self, client: Client, harness: Harness, transcript: Transcript) -> None:
        self._client, self._harness, self._transcript = client, harness, transcript
        self._answers: dict[str, ElicitResult] = {}
        self._state: str | None = None
        self.invocations: list[Invocation] = []

    async def answer_questions(self, number: int) -> None:
        result = await self._round(number)
        if not isinstance(result, InputRequiredResult):
            surprise = f"round {number} ended the call: {_text(result)}"
            raise DemoError(surprise)
        questions = result.input_requests or {}
        for key, request in questions.items():
            params = request.params if isinstance(request, ElicitRequest) else None
            if key not in ANSWERS or not isinstance(params, ElicitRequestFormParams):
                surprise = f"the demo has no answer to {key}"
                raise DemoError(surprise)
            self._transcript.question(key, params.message, params.requested_schema)
        self._answers = {key: ElicitResult(action="accept", content=ANSWERS[key]) for key in questions}
        self._state = result.request_state or ""
        self._transcript.state(self._state)

    async def finish(self) -> None:
        text = _text(await self._round(ROUNDS))
        expect(text.startswith(ENDING), f"the call ended with another result: {text}")
        self._transcript.result(text)

    async def send_changed_state(self) -> None:
        state = self._state or ""
        position = len(state) // 2
        other = "B" if state[position : position + 1] == "A" else "A"
        try:
            await self._call(state[:position] + other + state[position + 1 :])
        except MCPError as error:
            expect(error.code == INVALID_STATE, f"the server answered a changed state with {error.code}")
            self._transcript.refusal(ROUNDS, position, error.code, error.message)
        else:
            surprise = "the server accepted a changed state"
            raise DemoError(surprise)

    async def _round(self, number: int) -> CallToolResult | InputRequiredResult:
        self._transcript.heading(f"Round {number}")
        answers = {key: answer.content for key, answer in self._answers.items()}
        self._transcript.call(TOOL, ARGUMENTS, answers, number - 1)
        result = await self._call(self._state)
        self.invocations.append([one for one in self._harness.invocations if one.folder == TOOL][-1])
        self._transcript.invocation(self.invocations[-1])
        return result

    async def _call(self, state: str | None) -> CallToolResult | InputRequiredResult:
        return await self._client.session.call_tool(
            TOOL, ARGUMENTS, input_responses=dict(self._answers) or None, request_state=state, allow_input_required=True
        )


def _text(result: CallToolResult | InputRequiredResult) -> str:
    if isinstance(result, InputRequiredResult):
        return "it asks again"
    return " ".join(getattr(block, "text", "") for block in result.content)
