"""The sample `briefing`: a prompt that asks its user for the audience.

`recording` compares a conversation with the API Gateway events in events/briefing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from functions.briefing.app import handler
from mcp_functions_harness.testing import Conversation

if TYPE_CHECKING:
    from tests.support.recordings import Recording


def test_the_prompt_names_the_audience_that_the_user_chose(recording: Recording) -> None:
    talk = Conversation(handler).call(topic="the outage")
    talk.accept(audience={"audience": "executives"})
    assert talk.text == "Write a briefing on the outage for executives, to be read in 5 minutes."
    recording.assert_matches(talk, steps=["get", "audience"])


def test_the_form_publishes_the_default_and_the_limits_of_a_field() -> None:
    talk = Conversation(handler).call(topic="the outage")
    assert talk.requests["audience"]["params"]["requestedSchema"]["properties"]["minutes"] == {
        "type": "integer",
        "default": 5,
        "minimum": 1,
        "maximum": 30,
        "description": "How long they have to read it",
    }


def test_a_declined_question_is_a_json_rpc_error_because_prompts_have_no_is_error() -> None:
    talk = Conversation(handler).call(topic="the outage").decline()
    assert talk.status == 200
    assert talk.error["code"] == -32602
    assert talk.error["message"].startswith("The user declined to answer: Who is the briefing")


def test_the_error_for_a_missing_argument_names_it() -> None:
    talk = Conversation(handler).call()
    assert talk.error == {"code": -32602, "message": "Argument 'topic': it is missing"}
