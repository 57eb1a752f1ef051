"""A resource template that asks for a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from functions.ticket.app import handler
from mcp_functions.testing import Conversation

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.local.api_gateway.events import Moment

    Recorded = Callable[[Conversation, list[str]], None]


def test_a_reason_opens_the_ticket(recorded: Recorded, moment: Callable[[], Moment]) -> None:
    talk = Conversation(handler, moment=moment).read("tickets://ACME/7")
    assert talk.requests["reason"]["params"]["message"] == "Why do you need to read ACME-7?"
    talk.accept(reason={"reason": "on call"})
    assert talk.result["contents"] == [
        {
            "uri": "tickets://ACME/7",
            "mimeType": "text/plain",
            "text": "ACME-7: the printer on floor 3 is on fire. (Read because: on call)",
        }
    ]
    recorded(talk, ["read", "reason"])


def test_a_resource_read_after_a_question_may_not_be_cached() -> None:
    talk = Conversation(handler).read("tickets://ACME/7")
    assert "ttlMs" not in talk.result
    talk.accept(reason={"reason": "on call"})
    assert (talk.result["ttlMs"], talk.result["cacheScope"]) == (0, "private")


def test_without_a_reason_the_ticket_is_redacted() -> None:
    assert Conversation(handler).read("tickets://ACME/7").decline().text == "ACME-7: [redacted]"


def test_a_reason_too_short_is_asked_again() -> None:
    talk = Conversation(handler).read("tickets://ACME/7").accept(reason={"reason": "no"})
    assert "at least 3 characters" in talk.requests["reason"]["params"]["message"]


def test_a_uri_that_no_template_fits_is_an_unknown_resource() -> None:
    talk = Conversation(handler).read("tickets://ACME")
    assert talk.error == {"code": -32602, "message": "Resource not found", "data": {"uri": "tickets://ACME"}}


def test_a_ticket_number_is_a_number() -> None:
    talk = Conversation(handler).read("tickets://ACME/seven")
    assert talk.error == {"code": -32602, "message": "Argument 'number': must be an integer"}
