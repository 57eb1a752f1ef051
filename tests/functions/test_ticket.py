"""The sample `ticket`: a resource template that asks its reader for a reason.

`recording` compares a conversation with the API Gateway events in events/ticket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from functions.ticket.app import handler
from mcp_functions_harness.testing import Conversation

if TYPE_CHECKING:
    from tests.support.recordings import Recording


def test_the_user_reads_the_ticket_after_giving_a_reason(recording: Recording) -> None:
    talk = Conversation(handler).read("tickets://ACME/7")
    assert talk.requests["reason"]["params"]["message"] == "Why do you need to read ACME-7?"
    talk.accept(reason={"reason": "on call"})
    assert talk.result["contents"] == [
        {
            "uri": "tickets://ACME/7",
            "mimeType": "text/plain",
            "text": "ACME-7: the printer on floor 3 is on fire. (Read because: on call)",
        }
    ]
    recording.assert_matches(talk, steps=["read", "reason"])


def test_a_user_who_declines_reads_a_redacted_ticket() -> None:
    assert Conversation(handler).read("tickets://ACME/7").decline().text == "ACME-7: [redacted]"


def test_the_question_is_repeated_after_a_reason_that_is_too_short() -> None:
    talk = Conversation(handler).read("tickets://ACME/7").accept(reason={"reason": "no"})
    assert "at least 3 characters" in talk.requests["reason"]["params"]["message"]


def test_a_uri_that_does_not_match_the_template_is_an_unknown_resource() -> None:
    talk = Conversation(handler).read("tickets://ACME")
    assert talk.error == {"code": -32602, "message": "Resource not found", "data": {"uri": "tickets://ACME"}}


def test_a_ticket_number_that_is_no_integer_is_an_invalid_argument() -> None:
    talk = Conversation(handler).read("tickets://ACME/seven")
    assert talk.error == {"code": -32602, "message": "Argument 'number': must be an integer"}
