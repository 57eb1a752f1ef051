"""The sample `add`: a tool that asks its user nothing.

`recording` compares a conversation with the API Gateway events in events/add.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from functions.add.app import add, handler
from mcp_functions_harness.testing import Conversation, deployed

if TYPE_CHECKING:
    from mcp_functions.protocol.wire_types import Params
    from tests.support.recordings import Recording


def test_add_returns_the_sum_of_two_integers(recording: Recording) -> None:
    talk = Conversation(handler).call(a=2, b=3)
    assert talk.text == "5"
    assert talk.result["structuredContent"] == 5
    recording.assert_matches(talk, steps=["add"])


def test_the_decorated_function_can_be_called_directly() -> None:
    assert add(2, 3) == 5


@pytest.mark.parametrize("value", ["2", 2.5, True, None, [2]])
def test_the_error_for_a_value_of_another_type_does_not_quote_it(value: object) -> None:
    talk = Conversation(handler).call(a=value, b=3)
    assert talk.result["isError"]
    assert talk.text == "Argument 'a': must be an integer"


def test_the_error_for_an_unknown_argument_names_it() -> None:
    assert Conversation(handler).call(a=1, b=2, c=3).text == "Unknown argument 'c'; known are: a, b"


def test_a_function_without_a_kms_key_refuses_every_request_state() -> None:
    with deployed(MCP_KMS_KEYS=None):
        talk = Conversation(handler.fresh()).call(a=2, b=3)
        inputs: Params = {"requestState": "ks1.AAAA", "inputResponses": {}}
        talk._send(inputs)  # noqa: SLF001 - the function returned no state to send
    assert talk.status == 400
    assert talk.error["message"] == "Invalid or expired requestState"
