"""The sample `house_rules`: a resource with a fixed URI that asks its reader for a language.

`recording` compares a conversation with the API Gateway events in events/house_rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from functions.house_rules.app import RULES, handler
from mcp_functions_harness.testing import Conversation

if TYPE_CHECKING:
    from tests.support.recordings import Recording

URI = "house://rules"


def test_the_resource_has_the_rules_in_the_readers_language(recording: Recording) -> None:
    talk = Conversation(handler).read(URI)
    assert talk.requests["reader"]["params"]["message"] == "In which language would you like to read them?"
    talk.accept(reader="Deutsch")
    assert talk.result["contents"] == [{"uri": URI, "mimeType": "text/plain", "text": RULES["Deutsch"]}]
    recording.assert_matches(talk, steps=["read", "reader"])


def test_a_user_who_declines_or_dismisses_reads_english() -> None:
    assert Conversation(handler).read(URI).decline().text == RULES["English"]
    assert Conversation(handler).read(URI).cancel().text == RULES["English"]


def test_the_question_is_repeated_after_an_unknown_language() -> None:
    talk = Conversation(handler).read(URI).accept(reader="Latin")
    assert talk.asked == ["reader"]


def test_rules_that_depend_on_an_answer_must_not_be_cached() -> None:
    talk = Conversation(handler).read(URI).accept(reader="Deutsch")
    assert talk.result["ttlMs"] == 0
    assert talk.result["cacheScope"] == "private"


def test_another_uri_is_an_unknown_resource() -> None:
    talk = Conversation(handler).read("house://rooms")
    assert talk.error == {"code": -32602, "message": "Resource not found", "data": {"uri": "house://rooms"}}


def test_the_form_offers_every_language_that_has_rules() -> None:
    talk = Conversation(handler).read(URI)
    form = talk.requests["reader"]["params"]["requestedSchema"]
    assert form["properties"]["reader"]["enum"] == list(RULES)
