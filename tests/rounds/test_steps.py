"""A step runs once in a conversation; later rounds read its recorded result.

A conversation is one call of a tool. Each of its requests is a round, in which the tool runs from its first line.
A question without an answer ends the round. `talk_to(tool)` is the client: `call()` sends the first request, and
`accept(ok=True)` sends the next one, with the answer to the question `ok`.
"""

from __future__ import annotations

import asyncio
import contextlib
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from mcp_functions import Elicit, Step, ToolError, prompt, resource, serve, tool
from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.rounds.round import Round
from mcp_functions_harness.testing import Conversation
from tests.support.conversations import talk_to

if TYPE_CHECKING:
    from collections import Counter

    from tests.rounds.conftest import AuthorError

# A step runs in one round.


def test_a_step_runs_only_in_the_first_of_three_rounds(runs: Counter[str]) -> None:
    def reserve(city: str) -> str:
        runs["reserve"] += 1
        return f"a seat to {city}"

    @tool
    def book(city: str, *, elicit: Elicit, step: Step) -> str:
        seat = step("reserve", reserve, city)
        elicit("first", f"{seat}?", bool)
        elicit("second", "Really?", bool)
        return seat

    talk = talk_to(book).call(city="Lisbon").accept(first=True).accept(second=True)
    assert talk.text == "a seat to Lisbon"
    assert runs == {"reserve": 1}


def test_the_result_of_a_step_is_encrypted_in_the_request_state() -> None:
    @tool
    def hide(*, elicit: Elicit, step: Step) -> str:
        place = step("hide", lambda: "the treasure is below the oak")
        elicit("ok", "Ok?", bool)
        return place

    talk = talk_to(hide).call()
    assert "treasure" not in str(talk.body)
    assert talk.accept(ok=True).text == "the treasure is below the oak"


def test_each_pass_of_a_loop_is_a_step_with_its_own_key(runs: Counter[str]) -> None:
    def fetch(page: int) -> int:
        runs[f"page {page}"] += 1
        return page * page

    @tool
    def add_pages(*, elicit: Elicit, step: Step) -> int:
        total = 0
        for page in range(3):
            total += step(f"page-{page}", fetch, page)
        elicit("ok", f"{total}?", bool)
        return total

    assert talk_to(add_pages).call().accept(ok=True).text == "5"
    assert runs == {"page 0": 1, "page 1": 1, "page 2": 1}


def test_a_step_may_be_read_again_in_its_own_round(runs: Counter[str]) -> None:
    def roll() -> int:
        runs["roll"] += 1
        return runs["roll"]

    @tool
    def roll_twice(*, step: Step) -> list[int]:
        return [step("roll", roll), step("roll", roll)]

    assert talk_to(roll_twice).call().result["structuredContent"] == [1, 1]


def test_a_step_that_raises_is_not_recorded_and_runs_again(runs: Counter[str]) -> None:
    def reserve() -> str:
        runs["reserve"] += 1
        if runs["reserve"] == 1:
            message = "not yet"
            raise LookupError(message)
        return "a seat"

    @tool
    def book(*, elicit: Elicit, step: Step) -> str:
        try:
            return step("reserve", reserve)
        except LookupError:
            elicit("again", "It failed. Again?", bool)
            return "unreached"

    assert talk_to(book).call().accept(again=True).text == "a seat"
    assert runs == {"reserve": 2}


def test_a_tool_error_in_a_step_is_the_result_of_the_tool() -> None:
    def reserve() -> str:
        message = "No seats left."
        raise ToolError(message)

    @tool
    def book(*, step: Step) -> str:
        return step("reserve", reserve)

    result = talk_to(book).call().result
    assert result["isError"]
    assert result["content"][0]["text"] == "No seats left."


def test_prompts_and_resources_have_steps_too(runs: Counter[str]) -> None:
    def look_up() -> str:
        runs["look up"] += 1
        return "No shoes."

    @prompt
    def brief(*, elicit: Elicit, step: Step) -> str:
        return f"{step('look up', look_up)} {elicit('ok', 'Ok?', bool)}"

    @resource("house://rules")
    def rules(*, elicit: Elicit, step: Step) -> str:
        return f"{step('look up', look_up)} {elicit('ok', 'Ok?', bool)}"

    assert talk_to(brief).get().accept(ok=True).text == "No shoes. True"
    assert talk_to(rules).read("house://rules").accept(ok=True).text == "No shoes. True"
    assert runs == {"look up": 2}


# No step begins after the end of a round.


def test_no_step_begins_after_an_open_question_has_ended_the_round(runs: Counter[str]) -> None:
    def cancel() -> None:
        runs["cancel"] += 1

    @tool
    def confirm(*, elicit: Elicit, step: Step) -> str:
        agreed = False
        with contextlib.suppress(BaseException):
            agreed = elicit("ok", "Ok?", bool)
        if not agreed:
            step("cancel", cancel)
        return f"agreed: {agreed}"

    talk = talk_to(confirm).call()
    assert talk.asked == ["ok"]
    assert talk.accept(ok=True).text == "agreed: True"
    assert runs == {}


def test_no_step_begins_after_a_broken_rule(runs: Counter[str], author_error: AuthorError) -> None:
    def work(_value: object) -> None:
        runs["work"] += 1

    @tool
    def work_on(*, step: Step) -> str:
        for value in (object(), 1):
            with contextlib.suppress(Exception):
                step("work", work, value)
        return "done"

    assert author_error(talk_to(work_on).call()) == "step 'work': JSON cannot carry the arguments of work"
    assert runs == {}


def test_an_error_of_the_author_does_not_hide_a_broken_rule(author_error: AuthorError) -> None:
    @tool
    def work(*, step: Step) -> str:
        try:
            return str(step("work", object))
        except DeveloperError as error:
            message = "an error of the author's own"
            raise LookupError(message) from error

    assert author_error(talk_to(work).call()) == "step 'work': JSON cannot carry what object returned"


# An idempotency key lets a service recognize a step that runs again.


class Bank:
    """A service that must not act twice. It records the idempotency key of each payment."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def pay(self, euros: int, *, key: str) -> str:
        self.keys.append(key)
        return f"receipt for {euros}"


@pytest.fixture
def bank() -> Bank:
    return Bank()


def call_pay(bank: Bank) -> Conversation:
    """Call a tool that asks, pays in a step, and asks again."""

    @tool
    def pay(euros: int, *, elicit: Elicit, step: Step) -> str:
        elicit("ok", f"Pay {euros}?", bool)
        receipt = step("charge", lambda: bank.pay(euros, key=step.key))
        elicit("rating", "Was it easy?", bool)
        return receipt

    return talk_to(pay).call(euros=7)


def test_after_a_lost_response_a_step_may_run_again_but_under_the_same_key(bank: Bank) -> None:
    talk = call_pay(bank).accept(ok=True).retry()
    first, second = bank.keys
    assert first == second
    assert talk.accept(rating=True).text == "receipt for 7"
    assert len(bank.keys) == 2


def test_another_conversation_has_another_key(bank: Bank) -> None:
    for _ in range(2):
        call_pay(bank).accept(ok=True)
    first, second = bank.keys
    assert first != second


def test_each_step_has_its_own_key(bank: Bank) -> None:
    @tool
    def pay_two(*, elicit: Elicit, step: Step) -> str:
        elicit("ok", "Pay?", bool)
        for payee in ("Ann", "Bob"):
            step(f"pay-{payee}", lambda: bank.pay(7, key=step.key))
        return "paid"

    talk_to(pay_two).call().accept(ok=True)
    first, second = bank.keys
    assert first != second


def test_a_key_has_32_letters_and_digits(bank: Bank) -> None:
    call_pay(bank).accept(ok=True)
    assert len(bank.keys[0]) == 32
    assert bank.keys[0].isalnum()


def test_a_key_is_read_while_its_step_runs(author_error: AuthorError) -> None:
    @tool
    def pay(*, step: Step) -> str:
        return step("charge", lambda key: f"paid under {key}", step.key)

    expected = "step.key is the key of a running step: read it in the function that the step calls"
    assert author_error(talk_to(pay).call()) == expected


def test_without_kms_keys_a_step_has_no_idempotency_key() -> None:
    step = Step(Round())
    with pytest.raises(DeveloperError, match="MCP_KMS_KEYS is not set"):
        step("charge", lambda: step.key)


# A keyed step: `step.keyed` passes the idempotency key, and does not run before the client has a state.


def test_a_keyed_step_does_not_run_in_the_first_round(bank: Bank) -> None:
    @tool
    def pay(euros: int, *, step: Step) -> str:
        return step.keyed("charge", bank.pay, euros)

    talk = talk_to(pay).call(euros=7)
    assert not talk.done
    assert talk.asked == []
    assert bank.keys == []
    assert talk.answer().text == "receipt for 7"


def test_a_keyed_step_has_the_same_key_after_a_lost_response(bank: Bank) -> None:
    @tool
    def pay(euros: int, *, step: Step) -> str:
        return step.keyed("charge", bank.pay, euros)

    talk_to(pay).call(euros=7).answer().retry()
    first, second = bank.keys
    assert first == second


def test_a_keyed_step_after_a_question_needs_no_round_of_its_own(bank: Bank) -> None:
    @tool
    def pay(euros: int, *, elicit: Elicit, step: Step) -> str:
        elicit("ok", f"Pay {euros}?", bool)
        return step.keyed("charge", bank.pay, euros)

    talk = talk_to(pay).call(euros=7).accept(ok=True)
    assert talk.text == "receipt for 7"
    assert len(talk.rounds) == 2


def test_the_steps_before_a_keyed_step_are_recorded(bank: Bank, runs: Counter[str]) -> None:
    def quote() -> int:
        runs["quote"] += 1
        return 7

    @tool
    def pay(*, step: Step) -> str:
        return step.keyed("charge", bank.pay, step("quote", quote))

    assert talk_to(pay).call().answer().text == "receipt for 7"
    assert runs == {"quote": 1}


def test_a_keyed_step_runs_in_the_first_round_if_no_other_may_follow(bank: Bank) -> None:
    @tool(max_sheds=0)  # no round may end without a question
    def pay(euros: int, *, step: Step) -> str:
        return step.keyed("charge", bank.pay, euros)

    assert talk_to(pay).call(euros=7).text == "receipt for 7"


def test_an_async_keyed_step_gets_its_key(bank: Bank) -> None:
    async def charge(euros: int, *, key: str) -> str:
        await asyncio.sleep(0)
        return bank.pay(euros, key=key)

    @tool
    async def pay(*, step: Step) -> str:
        return await step.keyed.wait("charge", charge, 7)

    assert talk_to(pay).call().answer().text == "receipt for 7"
    assert len(bank.keys) == 1


# Times, ids and random numbers are the same in every round.


def test_the_start_time_is_the_same_in_every_round() -> None:
    began = 1_785_000_000.123  # unix seconds

    @tool
    def tell_time(*, elicit: Elicit, step: Step) -> str:
        elicit("ok", f"It is {step.now():%d %b %Y %H:%M}. Ok?", bool)
        return step.now().isoformat()

    talk = Conversation(serve(tell_time, now=lambda: began)).call().later(minutes=5)
    assert talk.accept(ok=True).done
    assert datetime.fromisoformat(talk.text).timestamp() == began


@tool
def draw(*, elicit: Elicit, step: Step) -> list[str]:
    """Draw two ids and two random numbers."""
    values = [str(step.uuid("a")), str(step.uuid("b")), str(step.random("a")), str(step.random("b"))]
    elicit("ok", f"You drew {values}. Keep them?", bool)
    return values


def test_ids_and_random_numbers_are_the_same_in_every_round_and_repetition() -> None:
    talk = talk_to(draw).call()
    question = talk.messages
    assert talk.answer().messages == question
    assert talk.retry().messages == question
    assert str(talk.accept(ok=True).result["structuredContent"]) in question["ok"]


def test_each_key_has_its_own_id_and_random_number() -> None:
    first_id, second_id, *numbers = talk_to(draw).call().accept(ok=True).result["structuredContent"]
    assert first_id != second_id
    assert UUID(first_id).version == 4
    assert numbers[0] != numbers[1]


def test_a_random_number_is_between_0_and_1() -> None:
    @tool
    def draw_many(*, step: Step) -> list[float]:
        return [step.random(f"number {number}") for number in range(100)]

    numbers = talk_to(draw_many).call().result["structuredContent"]
    assert 0 <= min(numbers) < 0.5 <= max(numbers) < 1


def test_another_conversation_has_other_ids_and_random_numbers() -> None:
    talk = talk_to(draw)
    question = talk.call().messages
    assert talk.call().messages != question


# Rules for authors.


def test_a_step_may_not_run_inside_a_step(author_error: AuthorError) -> None:
    @tool
    def nest(*, step: Step) -> str:
        return step("outer", lambda: step("inner", lambda: "unreached"))

    expected = "step 'inner' runs inside step 'outer': a step is recorded as a whole"
    assert author_error(talk_to(nest).call()) == expected


def test_a_step_of_another_conversation_is_not_inside_this_step() -> None:
    @tool
    def inner(*, step: Step) -> str:
        return step("inner", lambda: "from the inner tool")

    @tool
    def outer(*, step: Step) -> str:
        return step("outer", lambda: talk_to(inner).call().text)

    assert talk_to(outer).call().text == "from the inner tool"


def test_a_step_may_not_ask_a_question(author_error: AuthorError) -> None:
    @tool
    def book(*, elicit: Elicit, step: Step) -> str:
        return str(step("book", lambda: elicit("ok", "Ok?", bool)))

    expected = "'ok' is asked inside step 'book', which would run again: ask before it"
    assert author_error(talk_to(book).call()) == expected


def test_an_async_function_needs_wait(author_error: AuthorError) -> None:
    async def fetch() -> str:
        return "fetched"

    @tool
    async def fetch_now(*, step: Step) -> str:
        return str(step("fetch", fetch))

    expected = "step 'fetch' calls an async function: await step.wait('fetch', …)"
    assert author_error(talk_to(fetch_now).call()) == expected


@pytest.mark.parametrize("key", [3, None, b"k"])
def test_a_key_of_a_step_is_a_string(key: Any, runs: Counter[str], author_error: AuthorError) -> None:  # noqa: ANN401
    """JSON writes the key 3 as "3": the next round would not find the step, and run it again."""

    @tool
    def count(*, step: Step) -> str:
        step(key, runs.update, ["count"])
        return "done"

    assert author_error(talk_to(count).call()) == f"a step's key is text, and not of type {type(key).__name__}"
    assert runs == {}
