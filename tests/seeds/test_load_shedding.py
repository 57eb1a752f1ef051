"""SEP-2322, use case 2: a server instance that is too busy hands its work to another, through the client.

A low-level function does it explicitly, by ending a round with a state and no question; steps do it automatically.
Unlike in the document, an empty `inputRequests` is present: without it a common client reads a final result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions.testing import Conversation
from tests.seeds.functions import RAN, handler, instance, stepping
from tests.support import wire

if TYPE_CHECKING:
    from mcp_functions.http.gateway import LambdaFunction


def call(instance: LambdaFunction, upto: int, state: str | None = None) -> dict[str, Any]:
    params = {"name": "summing", "arguments": {"upto": upto}, **({} if state is None else {"requestState": state})}
    # a client without any capability: there is nothing to ask it for
    sent = wire.message("tools/call", params, capabilities={})
    response = instance(wire.event(sent), wire.Context("local-summing"))
    result: dict[str, Any] = wire.read(response, "tools/call")["result"]
    return result


@pytest.fixture
def ran() -> list[int]:
    RAN.clear()
    return RAN


def test_another_instance_picks_up_the_computation_where_the_first_left_off(ran: list[int]) -> None:
    shed = call(instance("A", capacity=6), 10)
    assert (shed["resultType"], shed["inputRequests"]) == ("input_required", {})
    assert ran == [1, 2, 3, 4, 5, 6]
    done = call(instance("B", capacity=6), 10, shed["requestState"])
    assert done["content"] == [{"type": "text", "text": "B: the sum is 55."}]
    assert ran == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]  # nothing twice


def test_work_in_steps_moves_to_another_instance_by_itself_when_its_time_is_up(ran: list[int]) -> None:
    a, b = stepping("A"), stepping("B")
    first = call(a, 3)
    assert (first["resultType"], first["inputRequests"], ran) == ("input_required", {}, [1])
    second = call(b, 3, first["requestState"])
    assert (second["resultType"], second["inputRequests"], ran) == ("input_required", {}, [1, 2])
    assert call(a, 3, second["requestState"])["content"] == [{"type": "text", "text": "A: the sum is 6."}]
    assert ran == [1, 2, 3]  # nothing twice


def test_work_may_move_on_as_often_as_it_must(ran: list[int]) -> None:
    talk = Conversation(instance("C", capacity=1)).call(upto=5)
    while talk.result["resultType"] == "input_required":
        talk.answer()
    assert (talk.text, len(talk.rounds)) == ("C: the sum is 15.", 5)
    assert ran == [1, 2, 3, 4, 5]


def test_a_shed_round_that_is_repeated_does_the_same_work_and_no_other(ran: list[int]) -> None:
    talk = Conversation(instance("A", capacity=6)).call(upto=10)
    first = talk.answer().text
    assert talk.retry().text == first == "A: the sum is 55."
    assert ran == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 7, 8, 9, 10]


def test_work_that_never_ends_is_ended_by_the_round_budget() -> None:
    talk = Conversation(instance("C", capacity=1)).call(upto=1000)
    while talk.result["resultType"] == "input_required":
        talk.answer()
    assert talk.result["isError"]
    assert talk.text == "This conversation has used its 16 rounds. Start again."


def test_what_an_author_keeps_is_plain_to_the_function_and_opaque_on_the_wire() -> None:
    talk = Conversation(instance("A", capacity=6)).call(upto=10)
    assert "total" not in talk.state
    assert talk.answer().text == "A: the sum is 55."
    assert talk.tamper().status == 400


def test_an_answer_that_the_shed_round_brought_is_not_lost_with_it() -> None:
    talk = Conversation(handler).call("sheds_once").accept(login={"name": "octocat"})
    assert talk.requests == {}
    assert talk.answer().text == "octocat"
