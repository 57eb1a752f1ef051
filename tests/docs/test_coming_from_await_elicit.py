"""The page "Coming from `await ctx.elicit()`": the code "before" runs under the official SDK, the code "after" here.

The tests follow the order of the page.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequestFormParams, ElicitResult, TextContent
from pydantic import BaseModel

from mcp_functions import Elicit, ListRoots, Log, Progress, Question, Sample, Step, prompt, resource, serve, tool
from mcp_functions_harness.testing import Conversation
from tests.docs.pages import Page
from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp.client.session import ClientRequestContext
    from mcp_types import ElicitRequestParams

PAGE = Page.named("coming-from-await-elicit.md")
ANSWERS: Mapping[str, Mapping[str, Any]] = {"room": {"size": "large"}, "consent": {"book": True}}
BOOKED = "Booked the large room, 90 EUR paid."
NOTHING = "No room was booked."


class Ok(BaseModel):
    ok: bool


@pytest.fixture
def before() -> dict[str, Any]:
    return PAGE.run("python before")


@pytest.fixture
def after() -> dict[str, Any]:
    return PAGE.run("python after")


def run_old_tool(before: dict[str, Any], revision: str, *answers: ElicitResult) -> tuple[str, list[str]]:
    """Call the old tool with the official client, and return its result and its questions."""
    asked, left = [], list(answers)

    async def answer(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:  # noqa: ARG001
        assert isinstance(params, ElicitRequestFormParams)
        asked.append(params.message)
        return left.pop(0)

    async def call() -> str:
        async with Client(before["mcp"], mode=revision, elicitation_callback=answer) as client:
            (content,) = (await client.call_tool("book_room", {"day": "Monday"})).content
            assert isinstance(content, TextContent)
            return content.text

    return anyio.run(call), asked


def accepting(key: str) -> ElicitResult:
    return ElicitResult(action="accept", content=dict(ANSWERS[key]))


# ---- Why it cannot live here


def test_the_old_tool_works_at_2025_11_25(before: dict[str, Any]) -> None:
    said, asked = run_old_tool(before, "legacy", accepting("room"), accepting("consent"))
    assert said == BOOKED
    assert asked[0] == "Which room on Monday?"
    assert re.fullmatch("Booking [0-9a-f]{6} costs 90 EUR. Book it\\?", asked[1])


def test_the_old_tool_fails_at_2026_07_28(before: dict[str, Any]) -> None:
    with pytest.raises(ExceptionGroup) as error:
        run_old_tool(before, "2026-07-28", accepting("room"))
    cause: BaseException = error.value
    while isinstance(cause, BaseExceptionGroup):
        (cause,) = cause.exceptions
    assert isinstance(cause, MCPError)
    assert "no back-channel" in cause.message


def start_new_tool(after: dict[str, Any]) -> Conversation:
    return Conversation(after["handler"]).call(day="Monday")


def test_the_new_tool_returns_the_same_text_as_the_old_one(after: dict[str, Any]) -> None:
    talk = start_new_tool(after)
    assert talk.messages == {"room": "Which room on Monday?"}
    talk.accept(room=ANSWERS["room"])
    assert re.fullmatch("Booking [0-9a-f]{6} costs 90 EUR. Book it\\?", talk.messages["consent"])
    assert talk.accept(consent=ANSWERS["consent"]).text == BOOKED


def test_the_new_tool_runs_again_from_its_start_after_an_answer() -> None:
    lines = []

    @tool
    def asking(*, elicit: Elicit) -> str:
        """Ask in the middle."""
        lines.append("before the question")
        elicit("sure", "Sure?", Ok)
        lines.append("behind the question")
        return "done"

    Conversation(serve(asking)).call().accept(sure={"ok": True})
    assert lines == ["before the question", "before the question", "behind the question"]


def test_work_between_two_questions_is_a_step(after: dict[str, Any]) -> None:
    quoted = []

    def quote(size: str) -> int:
        quoted.append(size)
        return 90 + len(quoted) - 1  # dearer every time

    after["quote"] = quote
    assert start_new_tool(after).accept(room=ANSWERS["room"]).accept(consent=ANSWERS["consent"]).text == BOOKED
    assert quoted == ["large"]


# ---- Line by line


def test_prompts_and_resources_ask_as_well() -> None:
    @prompt
    def brief(*, elicit: Elicit) -> str:
        """Ask."""
        return str(elicit("sure", "Sure?", Ok).ok)

    @resource("things://all")
    def things(*, elicit: Elicit) -> str:
        """Ask."""
        return str(elicit("sure", "Sure?", Ok).ok)

    assert Conversation(serve(brief)).call().accept(sure={"ok": True}).text == "True"
    assert Conversation(serve(things)).read("things://all").accept(sure={"ok": True}).text == "True"


def test_an_async_handler_awaits_a_step_and_asks_without_await() -> None:
    @tool
    async def asking(*, elicit: Elicit, step: Step) -> str:
        """Await something, and ask without await."""

        async def look_up() -> str:
            await asyncio.sleep(0)
            return "found"

        found = await step.wait("look-up", look_up)
        return f"{found}: {elicit('sure', 'Sure?', Ok).ok}"

    assert Conversation(serve(asking)).call().accept(sure={"ok": True}).text == "found: True"


def test_the_model_sees_neither_context_nor_capabilities(after: dict[str, Any]) -> None:
    assert list(after["book_room"].describe()["inputSchema"]["properties"]) == ["day"]


def test_the_new_tool_handles_decline_and_cancel_where_the_old_one_did(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    for no in ("decline", "cancel"):
        refusing = ElicitResult(action=no)
        assert run_old_tool(before, "legacy", refusing)[0] == NOTHING
        assert run_old_tool(before, "legacy", accepting("room"), refusing)[0] == NOTHING
        assert getattr(start_new_tool(after), no)().text == NOTHING
        assert getattr(start_new_tool(after).accept(room=ANSWERS["room"]), no)().text == NOTHING

    @tool
    def plain(*, elicit: Elicit) -> str:
        """Ask, and catch nothing."""
        return str(elicit("sure", "Sure?", Ok).ok)

    @tool
    def branching(*, elicit: Elicit) -> str:
        """Ask, and look."""
        return type(elicit.outcome("sure", "Sure?", Ok)).__name__

    conversation = Conversation(serve(plain)).call().decline()
    assert (conversation.text, conversation.result["isError"]) == ("The user declined to answer: Sure?", True)
    assert Conversation(serve(branching)).call().decline().text == "Declined"
    assert Conversation(serve(branching)).call().accept(sure={"ok": True}).text == "Ok"


def test_an_answer_that_does_not_fit_is_asked_for_again(
    before: dict[str, Any], after: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    wrong = ElicitResult(action="accept", content={"size": "huge"})
    assert run_old_tool(before, "legacy", wrong)[0] == "Error executing tool book_room"
    assert "ValueError: Received an accepted elicitation whose content does not match" in caplog.text
    talk = start_new_tool(after).accept(room={"size": "huge"})
    assert talk.messages["room"].startswith("Which room on Monday? (Please answer again: size")


def test_a_url_question_is_repeated_in_a_loop() -> None:
    signed_in: list[bool] = []

    @tool
    def show(*, elicit: Elicit) -> str:
        """Ask to sign in."""
        while not signed_in:
            elicit.url("sign-in", "Please sign in", "https://forge.example/login")
        return "welcome"

    talk = Conversation(serve(show)).call()
    assert talk.answer(**{"sign-in": {"action": "accept"}}).asked == ["sign-in"]
    signed_in.append(True)
    assert talk.answer(**{"sign-in": {"action": "accept"}}).text == "welcome"


def test_sampling_and_roots_requests_work_like_questions() -> None:
    @tool
    def look(*, sample: Sample, list_roots: ListRoots) -> str:
        """Ask the client twice."""
        (root,) = list_roots()
        return f"{root['uri']}: {sample('summary', 'Say hello', max_tokens=100)['content']['text']}"

    talk = Conversation(serve(look)).call().answer(roots={"roots": [{"uri": "file:///a"}]})
    message = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hello"}}
    assert talk.answer(summary=message).text == "file:///a: hello"


def test_together_replaces_asyncio_gather() -> None:
    @tool
    def asking(*, elicit: Elicit) -> str:
        """Ask two things."""
        one, two = elicit.together(Question("One?", Ok, key="one"), Question("Two?", Ok, key="two"))
        return f"{one.ok} {two.ok}"

    talk = Conversation(serve(asking)).call()
    assert talk.asked == ["one", "two"]
    assert talk.accept(one={"ok": True}, two={"ok": False}).text == "True False"


def test_progress_and_log_messages_are_sent_with_their_round() -> None:
    @tool
    def work(*, progress: Progress, log: Log) -> str:
        """Report progress."""
        progress(1, total=2)
        log.info("half of it")
        return "done"

    meta = {"progressToken": "p", f"{wire.PREFIX}logLevel": "info"}
    sent = wire.message("tools/call", {"name": "work", "arguments": {}}, meta=meta)
    progressed, logged, _result = wire.messages(serve(work)(wire.event(sent), wire.Context("local_work")))
    assert (progressed["params"]["progress"], progressed["params"]["total"]) == (1, 2)
    assert logged["params"] == {"level": "info", "data": "half of it"}


def test_a_payment_gets_an_idempotency_key(after: dict[str, Any]) -> None:
    keys = []

    def pay(euros: int, key: str) -> str:
        keys.append(key)
        return f"{euros} EUR paid"

    after["pay"] = pay
    start_new_tool(after).accept(room=ANSWERS["room"]).accept(consent=ANSWERS["consent"]).retry()
    first, again = keys
    assert first == again


def test_ids_times_and_random_numbers_stay_the_same_in_a_conversation() -> None:
    drawn = set()

    @tool
    def draw(*, elicit: Elicit, step: Step) -> str:
        """Draw, and ask."""
        drawn.add((step.uuid("number"), step.now(), step.random("coin")))
        return str(elicit("sure", "Sure?", Ok).ok)

    Conversation(serve(draw)).call().retry().accept(sure={"ok": True})
    assert len(drawn) == 2  # the first request was repeated, which begins another conversation


def test_answer_within_replaces_a_timeout() -> None:
    @tool(answer_within=3600)
    def wait(*, elicit: Elicit) -> str:
        """Wait for an hour."""
        return str(elicit("sure", "Sure?", Ok).ok)

    assert Conversation(serve(wait)).call().later(minutes=59).accept(sure={"ok": True}).text == "True"
    late = Conversation(serve(wait)).call().later(minutes=60).accept(sure={"ok": True})
    assert late.error["message"] == "Invalid or expired requestState"


def test_a_finally_block_runs_at_the_end_of_each_round() -> None:
    closed = []

    @tool
    def careful(*, elicit: Elicit) -> str:
        """Close what was opened."""
        try:
            return str(elicit("sure", "Sure?", Ok).ok)
        finally:
            closed.append(True)

    Conversation(serve(careful)).call().accept(sure={"ok": True})
    assert closed == [True, True]


def test_another_container_continues_the_conversation_of_the_new_tool(after: dict[str, Any]) -> None:
    talk = start_new_tool(after).accept(room=ANSWERS["room"])
    another_container = PAGE.run("python after")["handler"]
    assert talk.upgrade(another_container).accept(consent=ANSWERS["consent"]).text == BOOKED


# ---- What does not come over


def test_the_server_does_not_support_subscriptions(after: dict[str, Any]) -> None:
    context = wire.Context("local_book_room")
    refused = after["handler"](wire.event(wire.message("subscriptions/listen", {"notifications": {}})), context)
    assert wire.read(refused, "subscriptions/listen")["error"]["code"] == -32601
    discovered = after["handler"](wire.event(wire.message("server/discover")), context)
    assert "listChanged" not in str(wire.read(discovered, "server/discover")["result"]["capabilities"])


def test_the_new_tool_serves_clients_of_earlier_revisions(after: dict[str, Any]) -> None:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
    sent = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    start_new_tool = after["handler"](wire.event(json.dumps(sent)), wire.Context("local_book_room"))
    assert json.loads(start_new_tool["body"])["result"]["protocolVersion"] == "2025-11-25"
