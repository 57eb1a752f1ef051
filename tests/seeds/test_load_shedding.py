"""SEP-2322, use case 2: an instance that is too busy ends its round, and another one continues the computation.

A low-level function ends a round itself, with a state and no question; a function of steps does it when its time is up.
`instance("A", capacity=6)` adds six numbers in a round; `computed_parts` has all numbers that were added. Unlike in the
document, an empty `inputRequests` is present: without it a common client would read a final result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions_harness.testing import Conversation
from tests.seeds.functions import PROCESSED_NUMBERS, handler, make_instance, make_instance_with_steps
from tests.support import wire

if TYPE_CHECKING:
    from mcp_functions.http.gateway import LambdaFunction


def call(make_instance: LambdaFunction, upto: int, state: str | None = None) -> dict[str, Any]:
    """Call an instance as a client without any capability, which no question could reach; return the result."""
    params: dict[str, Any] = {"name": "summing", "arguments": {"upto": upto}}
    if state is not None:
        params["requestState"] = state
    message = wire.message("tools/call", params, capabilities={})
    response = make_instance(wire.event(message), wire.Context("local_summing"))
    result: dict[str, Any] = wire.read(response, "tools/call")["result"]
    return result


@pytest.fixture
def computed_parts() -> list[int]:
    PROCESSED_NUMBERS.clear()
    return PROCESSED_NUMBERS


def assert_has_no_question(result: dict[str, Any]) -> None:
    assert result["resultType"] == "input_required"
    assert result["inputRequests"] == {}


def test_another_instance_continues_the_computation(computed_parts: list[int]) -> None:
    first = call(make_instance("A", capacity=6), 10)
    assert_has_no_question(first)
    assert computed_parts == [1, 2, 3, 4, 5, 6]
    second = call(make_instance("B", capacity=6), 10, first["requestState"])
    assert second["content"] == [{"type": "text", "text": "B: the sum is 55."}]
    assert computed_parts == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]


def test_a_function_of_steps_ends_a_round_when_its_time_is_up(computed_parts: list[int]) -> None:
    first = call(make_instance_with_steps("A"), 3)
    second = call(make_instance_with_steps("B"), 3, first["requestState"])
    assert_has_no_question(first)
    assert_has_no_question(second)
    assert call(make_instance_with_steps("A"), 3, second["requestState"])["content"] == [
        {"type": "text", "text": "A: the sum is 6."}
    ]
    assert computed_parts == [1, 2, 3]


def test_a_computation_may_need_many_rounds(computed_parts: list[int]) -> None:
    talk = Conversation(make_instance("C", capacity=1)).call(upto=5)
    while talk.result["resultType"] == "input_required":
        talk.answer()
    assert talk.text == "C: the sum is 15."
    assert len(talk.rounds) == 5
    assert computed_parts == [1, 2, 3, 4, 5]


def test_a_repeated_round_repeats_only_its_own_work(computed_parts: list[int]) -> None:
    talk = Conversation(make_instance("A", capacity=6)).call(upto=10)
    talk.answer().retry()
    assert talk.text == "A: the sum is 55."
    assert computed_parts == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 7, 8, 9, 10]


def test_the_limit_of_rounds_ends_an_endless_computation() -> None:
    talk = Conversation(make_instance("C", capacity=1)).call(upto=1000)
    while talk.result["resultType"] == "input_required":
        talk.answer()
    assert talk.result["isError"]
    assert talk.text == "This conversation has used its 16 rounds. Start again."


def test_the_request_state_of_a_computation_is_encrypted() -> None:
    talk = Conversation(make_instance("A", capacity=6)).call(upto=10)
    assert "total" not in talk.state
    assert talk.answer().text == "A: the sum is 55."
    assert talk.tamper().status == 400


def test_a_round_without_a_question_keeps_the_answers_of_its_request() -> None:
    talk = Conversation(handler).call("sheds_once").accept(login={"name": "octocat"})
    assert talk.requests == {}
    assert talk.answer().text == "octocat"
