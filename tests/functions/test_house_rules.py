"""A resource with a fixed URI that asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from functions.house_rules.app import RULES, handler
from mcp_functions.testing import Conversation

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.local.api_gateway.events import Moment

    Recorded = Callable[[Conversation, list[str]], None]

URI = "house://rules"


def test_the_rules_are_read_in_the_readers_language(recorded: Recorded, moment: Callable[[], Moment]) -> None:
    talk = Conversation(handler, moment=moment).read(URI)
    assert talk.requests["reader"]["params"]["message"] == "In which language would you like to read them?"
    talk.accept(reader="Deutsch")
    assert talk.result["contents"] == [{"uri": URI, "mimeType": "text/plain", "text": RULES["Deutsch"]}]
    recorded(talk, ["read", "reader"])


def test_a_user_who_declines_or_cancels_reads_english() -> None:
    assert Conversation(handler).read(URI).decline().text == RULES["English"]
    assert Conversation(handler).read(URI).cancel().text == RULES["English"]


def test_an_unknown_language_is_asked_again() -> None:
    talk = Conversation(handler).read(URI).accept(reader="Latin")
    assert talk.asked == ["reader"]
    assert talk.accept(reader="Português").text == RULES["Português"]


def test_a_readers_choice_may_not_be_cached_for_another_reader() -> None:
    talk = Conversation(handler).read(URI).accept(reader="Deutsch")
    assert (talk.result["ttlMs"], talk.result["cacheScope"]) == (0, "private")


def test_another_uri_is_another_resource() -> None:
    talk = Conversation(handler).read("house://rooms")
    assert talk.error == {"code": -32602, "message": "Resource not found", "data": {"uri": "house://rooms"}}


def test_every_language_that_is_offered_has_its_rules() -> None:
    talk = Conversation(handler).read(URI)
    form = talk.requests["reader"]["params"]["requestedSchema"]
    assert form["properties"]["reader"]["enum"] == list(RULES)
