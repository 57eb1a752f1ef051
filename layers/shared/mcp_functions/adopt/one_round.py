"""Runs one round of a tool, prompt or resource of an adopted server: one request of its call."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mcp_functions.adopt.back_channel import KIND, RoundChannel
from mcp_functions.adopt.steps import current_round
from mcp_functions.adopt.surroundings import as_caller, asking_at_2026, is_refusal_to_ask, over_transport
from mcp_functions.handlers import event_loop

if TYPE_CHECKING:
    from mcp_functions.adopt.questions import AdoptedQuestions
    from mcp_functions.adopt.server import AdoptedServer
    from mcp_functions.protocol.wire_types import Params, ResultObject


def run_round(server: AdoptedServer, method: str, params: Params, questions: AdoptedQuestions) -> ResultObject:
    """Return the result of a request."""
    server.lifespan.enter()
    coroutine = _run(server, method, params, questions)
    return event_loop.run(coroutine, before_end=questions.round.wait_for_steps)


async def _run(server: AdoptedServer, method: str, params: Params, questions: AdoptedQuestions) -> ResultObject:
    round_, replays = questions.round, questions.replays
    current_round.set(round_ if replays else None)
    with over_transport(KIND), as_caller(round_.request), asking_at_2026(allowed=replays), questions.of_this_task():
        try:
            result = await server.run(method, _with_answers(params, questions), RoundChannel(questions))
        except asyncio.CancelledError:
            round_.check_not_ended()  # a question may have cancelled the handler, to end it
            raise
    if is_refusal_to_ask(result):  # FastMCP itself refused, and the channel got no question
        raise questions.refuse()
    round_.check_not_ended()  # the handler may have caught what ended the round
    questions.check_complete()
    if result.get("resultType") == "input_required":
        questions.open_returned(result)
        raise round_.interrupted()
    return result


def _with_answers(params: Params, questions: AdoptedQuestions) -> Params:
    """Return the params for a handler that returns its questions: with the user's answers, and the server's own state.

    The record of the round holds both. An answer is there only if its question was asked.
    """
    sent = params.copy()
    sent.pop("requestState", None)
    sent.pop("inputResponses", None)
    answers = questions.answers_to_returned()
    if answers:
        sent["inputResponses"] = answers
    state = questions.round.record.state
    if state is not None:
        sent["requestState"] = state
    return sent
