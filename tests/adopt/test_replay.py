"""A tool that asks runs again in every round if its author lists it in `replay`; other uses end with an error."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from fastmcp import Client as FastClient
from fastmcp import Context as FastContext
from fastmcp import FastMCP
from fastmcp.server import context as fastmcp_context
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CreateMessageResult, SamplingMessage, TextContent
from pydantic import BaseModel

from mcp_functions import serve
from mcp_functions.adopt import adopt, step
from mcp_functions_harness.testing import Conversation

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


class Ok(BaseModel):
    """Whether the person agrees."""

    ok: bool


def talk_to(tool: Callable[..., Any], *, replay: bool = True, **options: Any) -> Conversation:  # noqa: ANN401 - of Conversation
    """Adopt a server with one tool."""
    server = MCPServer("one")
    server.add_tool(tool)
    return Conversation(serve(*adopt(server, replay=[tool.__name__] if replay else [])), **options)


def agree(talk: Conversation) -> Conversation:
    """Agree to what is asked."""
    return talk.accept(**{key: {"ok": True} for key in talk.asked})


async def ask(ctx: Context, message: str) -> bool:
    outcome = await ctx.elicit(message, Ok)
    return outcome.action == "accept" and outcome.data.ok


def test_a_tool_that_asks_is_refused_until_its_author_lists_it_in_replay(caplog: pytest.LogCaptureFixture) -> None:
    async def transfer(ctx: Context) -> str:
        return str(await ask(ctx, "Move it?"))

    talk = talk_to(transfer, replay=False).call()
    assert talk.result["isError"]
    assert "adopt(server, replay=['transfer'])" in talk.text
    assert "adopt(server, replay=['transfer'])" in caplog.text
    assert agree(talk_to(transfer).call()).text == "True"


def test_a_tool_of_fastmcp_that_asks_is_refused_with_the_same_error() -> None:
    server = FastMCP("one")

    @server.tool
    async def transfer(ctx: FastContext) -> str:
        return (await ctx.elicit("Move it?", bool)).action

    conversation = Conversation(serve(*adopt(server))).call()
    assert conversation.result["isError"]
    assert "adopt(server, replay=['transfer'])" in conversation.text
    assert Conversation(serve(*adopt(server, replay=["transfer"]))).call().decline().text == "decline"


def test_fastmcp_itself_refuses_to_ask_with_the_constant_by_which_the_refusal_is_known() -> None:
    server = FastMCP("one")

    @server.tool
    async def transfer(ctx: FastContext) -> str:
        return (await ctx.elicit("Move it?", bool)).action

    async def call() -> Any:  # noqa: ANN401 - of FastMCP
        async with FastClient(server) as client:
            return await client.call_tool("transfer", raise_on_error=False)

    result = asyncio.run(call())
    assert result.is_error
    assert fastmcp_context._ELICIT_MODERN_ERROR in result.content[0].text  # noqa: SLF001 - it has no public name


@pytest.mark.parametrize(
    ("replay", "error"), [("transfer", "replay is a list"), (["transfr"], "'transfr', which the server does not list")]
)
def test_adopt_refuses_an_invalid_replay_option(replay: Any, error: str) -> None:  # noqa: ANN401 - wrong on purpose
    with pytest.raises((TypeError, ValueError), match=error):
        adopt(MCPServer("none"), replay=replay)


def test_only_three_kinds_of_servers_are_adopted() -> None:
    with pytest.raises(TypeError, match=r"adopt takes one server: .*, and not builtins\.dict"):
        adopt({})


def test_a_question_with_a_changed_message_ends_the_call() -> None:
    prices = iter(range(9))

    async def buy(ctx: Context) -> str:
        await ask(ctx, f"Pay {next(prices)}?")
        return "bought"

    talk = agree(talk_to(buy).call())
    assert talk.result["isError"]
    assert "did not ask question 1 as in the round before" in talk.text


def test_an_answer_never_reaches_a_question_that_replaced_its_own_question() -> None:
    order = iter([["first", "second"], ["first", "second"], ["second", "first"]])
    heard: list[tuple[str, bool]] = []

    async def visit(ctx: Context) -> str:
        for message in next(order):
            answer = await ask(ctx, message)
            heard.append((message, answer))
        return "done"

    talk = agree(agree(talk_to(visit).call()))
    assert "did not ask question 1" in talk.text
    assert heard == [("first", True)]


def test_a_round_that_leaves_a_question_out_ends_the_call() -> None:
    rounds = iter([2, 2, 1])

    async def visit(ctx: Context) -> str:
        for number in range(next(rounds)):
            await ask(ctx, f"Question {number}?")
        return "done"

    talk = agree(agree(talk_to(visit).call()))
    assert talk.result["isError"]
    assert "did not ask question 2" in talk.text


def test_two_equal_questions_end_the_call_before_the_second_is_answered() -> None:
    async def insist(ctx: Context) -> str:
        return f"{await ask(ctx, 'Sure?')} {await ask(ctx, 'Sure?')}"

    talk = agree(talk_to(insist).call())
    assert talk.result["isError"]
    assert "asks the same question twice" in talk.text


def test_questions_of_separate_asyncio_tasks_end_the_call() -> None:
    async def both(ctx: Context) -> str:
        return str(await asyncio.gather(ask(ctx, "Left?"), ask(ctx, "Right?")))

    talk = talk_to(both).call()
    assert talk.result["isError"]
    assert "asks in a task of its own" in talk.text


def test_a_tool_cannot_catch_the_end_of_its_round() -> None:
    async def stubborn(ctx: Context) -> str:
        try:
            await ask(ctx, "Sure?")
        except BaseException:  # noqa: BLE001 - the worst that a tool can do
            return "went on"
        return "answered"

    talk = talk_to(stubborn).call()
    assert talk.asked == ["question-1"]
    assert agree(talk).text == "answered"


def test_a_step_runs_once_although_its_tool_runs_in_every_round() -> None:
    charged: list[int] = []

    def charge(amount: int) -> str:
        charged.append(amount)
        return f"receipt {len(charged)}"

    async def post(text: str) -> str:
        charged.append(len(text))
        return text.upper()

    async def buy(amount: int, ctx: Context) -> str:
        receipt = step("charge", charge, amount)
        note = await step.wait("post", post, receipt)
        await ask(ctx, f"Keep {receipt}?")
        await ask(ctx, "A bag?")
        return f"{receipt} {note}"

    assert agree(agree(talk_to(buy).call(amount=5))).text == "receipt 1 RECEIPT 1"
    assert charged == [5, 9]


def test_a_step_outside_of_an_adopted_call_only_calls_its_function() -> None:
    assert step("twice", lambda number: number * 2, 4) == 8


def test_an_adopted_tool_asks_for_sampling_and_roots() -> None:
    async def summarize(ctx: Context) -> str:
        message = SamplingMessage(role="user", content=TextContent(type="text", text="Sum up"))
        said: CreateMessageResult = await ctx.session.create_message([message], max_tokens=9)
        roots = await ctx.session.list_roots()
        assert isinstance(said.content, TextContent)
        return f"{said.content.text} in {roots.roots[0].name}"

    talk = talk_to(summarize).call()
    assert talk.requests["question-1"]["method"] == "sampling/createMessage"
    answer = {"role": "assistant", "content": {"type": "text", "text": "short"}, "model": "m"}
    talk.answer(**{"question-1": answer})
    assert talk.requests["question-2"]["method"] == "roots/list"
    assert talk.answer(**{"question-2": {"roots": [{"uri": "file:///w", "name": "work"}]}}).text == "short in work"


def test_another_principal_cannot_answer_the_question_of_an_adopted_tool() -> None:
    async def transfer(ctx: Context) -> str:
        return str(await ask(ctx, "Move it?"))

    talk = agree(talk_to(transfer, principal="ada").call().as_("bob"))
    assert talk.error["message"] == "Invalid or expired requestState"


def test_a_client_without_forms_gets_the_question_of_an_adopted_tool_in_an_error() -> None:
    async def transfer(ctx: Context) -> str:
        return str(await ask(ctx, "Move it?"))

    talk = talk_to(transfer, capabilities={}).call()
    assert "Move it?" in str(talk.body)
    assert "True" not in talk.text
