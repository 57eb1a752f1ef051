"""SEP-2322's real-world example, word for word, and what a clumsy or hostile client does to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from functions.update_work_item.app import handler
from mcp_functions.protocol.messages import Principal
from mcp_functions.testing import Conversation, deployed

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.local.api_gateway.events import Moment

    Recorded = Callable[[Conversation, list[str]], None]

RESOLVE = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
FROZEN = {
    "code": -32602,
    "message": "Invalid or expired requestState",
    "data": {"reason": "invalid_request_state"},
}


def resolve(**options: object) -> Conversation:
    return Conversation(handler, **options).call(**RESOLVE)  # type: ignore[arg-type]  # as Conversation takes them


def test_a_duplicate_is_asked_for_its_original(recorded: Recorded, moment: Callable[[], Moment]) -> None:
    talk = resolve(moment=moment)
    assert talk.requests == {
        "resolution": {
            "method": "elicitation/create",
            "params": {
                "mode": "form",
                "message": "Resolving Bug #4522 requires a resolution. How was this bug resolved?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {
                        "resolution": {
                            "type": "string",
                            "enum": ["Fixed", "Won't Fix", "Duplicate", "By Design"],
                            "description": "Resolution type for this bug",
                        }
                    },
                    "required": ["resolution"],
                },
            },
        }
    }
    talk.accept(resolution={"resolution": "Duplicate"})
    assert talk.requests == {
        "duplicate_of": {
            "method": "elicitation/create",
            "params": {
                "mode": "form",
                "message": "Since this is a duplicate, which work item is the original?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {
                        "duplicateOfId": {"type": "number", "description": "Work item ID of the original bug"}
                    },
                    "required": ["duplicateOfId"],
                },
            },
        }
    }
    talk.accept(duplicate_of={"duplicateOfId": 4301})
    assert talk.result["content"] == [
        {
            "type": "text",
            "text": "Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created.",
        }
    ]
    assert talk.result["isError"] is False
    recorded(talk, ["resolve", "resolution", "duplicate_of"])


@pytest.mark.parametrize("resolution", ["Fixed", "Won't Fix", "By Design"])
def test_any_other_resolution_needs_no_second_question(resolution: str) -> None:
    talk = resolve().accept(resolution={"resolution": resolution})
    assert talk.text == f"Bug #4522 resolved as {resolution}. State set to Resolved."


def test_a_change_that_resolves_nothing_asks_nothing() -> None:
    talk = Conversation(handler).call(workItemId=4522, fields={"System.Title": "It burns"})
    assert talk.text == "Bug #4522 updated: System.Title."


@pytest.mark.parametrize("number", [4301, 4301.0])
def test_a_number_without_a_fraction_arrives_as_an_int_however_it_was_written(number: float) -> None:
    talk = resolve().accept(resolution={"resolution": "Duplicate"}).accept(duplicate_of={"duplicateOfId": number})
    assert "Bug #4301." in talk.text


def test_a_decline_differs_from_a_missing_answer() -> None:
    assert resolve().answer().asked == ["resolution"]
    declined = resolve().decline()
    assert declined.result["isError"]
    assert declined.text.startswith("The user declined to answer: Resolving Bug #4522")
    assert resolve().cancel().text.startswith("The user dismissed without answering: Resolving Bug #4522")


def test_an_answer_that_does_not_fit_is_asked_again_with_the_reason() -> None:
    talk = resolve().accept(resolution={"resolution": "Meh"})
    assert talk.asked == ["resolution"]
    message = talk.requests["resolution"]["params"]["message"]
    assert message.startswith("Resolving Bug #4522 requires a resolution. How was this bug resolved? (Please answer")
    assert 'resolution must be one of "Fixed", "Won\'t Fix", "Duplicate", "By Design"' in message
    assert "Meh" not in message
    assert talk.accept(resolution={"resolution": "Fixed"}).text.startswith("Bug #4522 resolved as Fixed")


def test_an_answer_that_was_not_requested_is_ignored() -> None:
    talk = Conversation(handler)
    talk.call(**RESOLVE)
    talk.answer(
        resolution={"action": "accept", "content": {"resolution": "Duplicate", "surprise": 1}},
        duplicate_of={"action": "accept", "content": {"duplicateOfId": 1}},
    )
    assert talk.asked == ["duplicate_of"]


def test_a_round_that_is_repeated_gives_the_same_round() -> None:
    talk = resolve().accept(resolution={"resolution": "Duplicate"})
    first = talk.requests
    assert talk.retry().requests == first


@pytest.mark.parametrize("position", [0, 3, 4, 20, 60, 200, -1])
def test_a_changed_byte_is_refused(position: int) -> None:
    talk = resolve()
    swapped = "A" if talk.state[position] != "A" else "B"
    end = talk.state[position + 1 :] if position != -1 else ""
    talk.tamper(lambda token: token[:position] + swapped + end)
    assert (talk.status, talk.error) == (400, FROZEN)


def test_a_state_for_other_arguments_is_refused() -> None:
    talk, other = resolve(), Conversation(handler)
    other.call(workItemId=4523, fields={"System.State": "Resolved"})
    other.tamper(lambda _token: talk.state)
    assert (other.status, other.error) == (400, FROZEN)


def test_a_state_of_another_principal_is_refused() -> None:
    with deployed(MCP_AUTH_MODE="jwt"):
        fresh = _fresh()
        alice, bob = (Principal("https://issuer", name, "client") for name in ("alice", "bob"))
        talk = Conversation(fresh, principal=alice).call(**RESOLVE)
        other = Conversation(fresh, principal=bob).call(**RESOLVE)
        other.tamper(lambda _token: talk.state)
        assert (other.status, other.error) == (400, FROZEN)
        assert talk.accept(resolution={"resolution": "Fixed"}).text.startswith("Bug #4522 resolved as Fixed")


def test_an_expired_state_is_refused() -> None:
    clock = [1_785_000_000.0]
    with deployed():
        fresh = _fresh(lambda: clock[0])
        talk = Conversation(fresh).call(**RESOLVE)
        clock[0] += 7 * 24 * 3600 - 1
        assert talk.answer().asked == ["resolution"]
        clock[0] += 7 * 24 * 3600
        talk.accept(resolution={"resolution": "Fixed"})
        assert (talk.status, talk.error) == (400, FROZEN)


@pytest.mark.parametrize("declared", [{}, {"elicitation": {"url": {}}}])
def test_a_client_without_forms_is_told_in_words_what_the_tool_asks(declared: dict[str, Any]) -> None:
    talk = resolve(capabilities=declared)
    assert (talk.status, talk.result["isError"]) == (200, True)
    assert "How was this bug resolved?" in talk.text


def test_arguments_that_do_not_fit_are_a_result_that_the_model_can_act_on() -> None:
    talk = Conversation(handler).call(workItemId="4522", fields={})
    assert talk.result["isError"]
    assert talk.text == "Argument 'workItemId': must be an integer"
    assert Conversation(handler).call(fields={}).text == "Argument 'workItemId': it is missing"


def _fresh(now: Callable[[], float] | None = None):  # type: ignore[no-untyped-def]  # noqa: ANN202 - what serve returns
    from functions.update_work_item.app import update_work_item  # noqa: PLC0415
    from mcp_functions import serve  # noqa: PLC0415 - a function of its own, wired to the deployment of this test

    return serve(update_work_item, now=now) if now else serve(update_work_item)
