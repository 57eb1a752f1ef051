"""A tool that never asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from functions.add.app import add, handler
from mcp_functions.testing import Conversation, deployed

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.local.api_gateway.events import Moment

    Recorded = Callable[[Conversation, list[str]], None]


def test_two_whole_numbers_are_added(recorded: Recorded, moment: Callable[[], Moment]) -> None:
    talk = Conversation(handler, moment=moment).call(a=2, b=3)
    assert (talk.text, talk.result["structuredContent"]) == ("5", 5)
    recorded(talk, ["add"])


def test_it_is_still_a_plain_function() -> None:
    assert add(2, 3) == 5


@pytest.mark.parametrize("wrong", ["2", 2.5, True, None, [2]])
def test_anything_else_is_refused_without_being_quoted(wrong: object) -> None:
    talk = Conversation(handler).call(a=wrong, b=3)
    assert talk.result["isError"]
    assert talk.text == "Argument 'a': must be an integer"


def test_an_argument_that_it_does_not_know_is_named() -> None:
    assert Conversation(handler).call(a=1, b=2, c=3).text == "Unknown argument 'c'; known are: a, b"


def test_a_state_that_reaches_a_function_without_a_key_is_refused_like_any_bad_state() -> None:
    with deployed(MCP_KMS_KEYS=None):
        from mcp_functions import serve  # noqa: PLC0415 - a function of its own, wired to this deployment

        talk = Conversation(serve(add))
        talk.call(a=2, b=3)
        talk._send(requestState="ks1.AAAA", inputResponses={})  # noqa: SLF001 - there is no state to echo
        assert (talk.status, talk.error["message"]) == (400, "Invalid or expired requestState")
