"""The sample `update_work_item`: the longest example of SEP-2322, the proposal that added multi-round requests to MCP.

A call that resolves a bug asks for the resolution; the answer "Duplicate" leads to a second question. The client holds
the encrypted request state between the rounds; here it also changes, repeats or exchanges it. `recording` compares a
conversation with the API Gateway events in events/update_work_item.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from functions.update_work_item.app import handler
from mcp_functions_harness.testing import EVERYTHING, Conversation, deployed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.recordings import Recording

RESOLVE_BUG: dict[str, Any] = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
RESOLUTION_REQUEST = {
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
DUPLICATE_REQUEST = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Since this is a duplicate, which work item is the original?",
        "requestedSchema": {
            "type": "object",
            "properties": {"duplicateOfId": {"type": "number", "description": "Work item ID of the original bug"}},
            "required": ["duplicateOfId"],
        },
    },
}
INVALID_REQUEST_STATE_ERROR = {
    "code": -32602,
    "message": "Invalid or expired requestState",
    "data": {"reason": "invalid_request_state"},
}


def start_resolving(capabilities: Mapping[str, Any] = EVERYTHING) -> Conversation:
    return Conversation(handler, capabilities=capabilities).call(**RESOLVE_BUG)


def test_a_resolved_bug_needs_a_resolution_and_a_duplicate_needs_its_original(recording: Recording) -> None:
    talk = start_resolving()
    assert talk.requests == {"resolution": RESOLUTION_REQUEST}
    talk.accept(resolution={"resolution": "Duplicate"})
    assert talk.requests == {"duplicate_of": DUPLICATE_REQUEST}
    talk.accept(duplicate_of={"duplicateOfId": 4301})
    assert talk.text == (
        "Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created."
    )
    recording.assert_matches(talk, steps=["resolve", "resolution", "duplicate_of"])


@pytest.mark.parametrize("resolution", ["Fixed", "Won't Fix", "By Design"])
def test_any_other_resolution_needs_no_second_question(resolution: str) -> None:
    talk = start_resolving().accept(resolution={"resolution": resolution})
    assert talk.text == f"Bug #4522 resolved as {resolution}. State set to Resolved."


def test_a_change_of_another_field_asks_no_question() -> None:
    talk = Conversation(handler).call(workItemId=4522, fields={"System.Title": "It burns"})
    assert talk.text == "Bug #4522 updated: System.Title."


@pytest.mark.parametrize("number", [4301, 4301.0])
def test_a_number_without_a_fraction_arrives_as_an_int(number: float) -> None:
    talk = start_resolving().accept(resolution={"resolution": "Duplicate"})
    talk.accept(duplicate_of={"duplicateOfId": number})
    assert "Duplicate of Bug #4301. State" in talk.text  # and not "#4301.0."


def test_a_request_without_the_answer_gets_the_question_again() -> None:
    assert start_resolving().answer().asked == ["resolution"]


def test_a_user_who_declines_gets_an_error_that_quotes_the_question() -> None:
    talk = start_resolving().decline()
    assert talk.result["isError"]
    assert talk.text.startswith("The user declined to answer: Resolving Bug #4522")


def test_a_user_who_dismisses_gets_an_error_that_quotes_the_question() -> None:
    talk = start_resolving().cancel()
    assert talk.result["isError"]
    assert talk.text.startswith("The user dismissed without answering: Resolving Bug #4522")


def test_an_invalid_answer_repeats_the_question_with_the_reason() -> None:
    talk = start_resolving().accept(resolution={"resolution": "Meh"})
    message = talk.requests["resolution"]["params"]["message"]
    assert message.startswith("Resolving Bug #4522 requires a resolution.")
    assert 'resolution must be one of "Fixed", "Won\'t Fix", "Duplicate", "By Design"' in message
    assert "Meh" not in message


def test_a_valid_answer_after_an_invalid_one_continues_the_call() -> None:
    talk = start_resolving().accept(resolution={"resolution": "Meh"})
    talk.accept(resolution={"resolution": "Fixed"})
    assert talk.text.startswith("Bug #4522 resolved as Fixed")


def test_the_function_ignores_an_answer_that_it_did_not_request() -> None:
    talk = start_resolving().answer(
        resolution={"action": "accept", "content": {"resolution": "Duplicate", "unknownField": 1}},
        duplicate_of={"action": "accept", "content": {"duplicateOfId": 1}},
    )
    assert talk.asked == ["duplicate_of"]


def test_a_repeated_request_gets_the_same_question() -> None:
    talk = start_resolving().accept(resolution={"resolution": "Duplicate"}).retry()
    assert talk.requests == {"duplicate_of": DUPLICATE_REQUEST}


@pytest.mark.parametrize("position", [0, 3, 4, 20, 60, 200, -1])
def test_a_request_state_with_one_changed_character_is_refused(position: int) -> None:
    talk = start_resolving()
    characters = list(talk.state)
    characters[position] = "B" if characters[position] == "A" else "A"
    talk.tamper(lambda _state: "".join(characters))
    assert talk.status == 400
    assert talk.error == INVALID_REQUEST_STATE_ERROR


def test_a_request_state_for_other_arguments_is_refused() -> None:
    talk = start_resolving()
    other = Conversation(handler).call(workItemId=4523, fields={"System.State": "Resolved"})
    other.tamper(lambda _state: talk.state)
    assert other.status == 400
    assert other.error == INVALID_REQUEST_STATE_ERROR


def test_a_request_state_of_another_principal_is_refused() -> None:
    with deployed(MCP_AUTH_MODE="jwt"):
        alice = Conversation(handler.fresh(), principal="alice").call(**RESOLVE_BUG)
        bob = alice.as_("bob").accept(resolution={"resolution": "Fixed"})
        assert bob.status == 400
        assert bob.error == INVALID_REQUEST_STATE_ERROR
        assert alice.accept(resolution={"resolution": "Fixed"}).done


@pytest.mark.parametrize(("seconds", "status"), [(-1, 200), (1, 400)])
def test_a_request_state_expires_after_seven_days(seconds: int, status: int) -> None:
    talk = start_resolving().later(days=7, seconds=seconds)
    assert talk.accept(resolution={"resolution": "Fixed"}).status == status


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}])
def test_a_client_without_forms_gets_the_question_as_text(capabilities: dict[str, Any]) -> None:
    talk = start_resolving(capabilities)
    assert talk.status == 200
    assert talk.result["isError"]
    assert "How was this bug resolved?" in talk.text


def test_an_invalid_argument_is_a_tool_error_that_the_model_can_read() -> None:
    talk = Conversation(handler).call(workItemId="4522", fields={})
    assert talk.result["isError"]
    assert talk.text == "Argument 'workItemId': must be an integer"
