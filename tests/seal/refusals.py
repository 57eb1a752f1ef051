"""Damaged tokens and their refusal. A client always gets the same error, so an attacker learns nothing from it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from mcp_functions.protocol.errors import InvalidRequestState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def assert_refused(reason: str) -> Iterator[None]:
    """Assert that the block refuses a state with the generic error, and with this reason for the log."""
    with pytest.raises(InvalidRequestState) as caught:
        yield
    assert_generic(caught.value)
    assert caught.value.reason == reason


def refusal_reason(open_state: Callable[[], object]) -> str:
    """Assert that a state is refused with the generic error. Return the reason, which is only logged."""
    with pytest.raises(InvalidRequestState) as caught:
        open_state()
    assert_generic(caught.value)
    return str(caught.value.reason)


def assert_generic(error: InvalidRequestState) -> None:
    assert (error.status, error.code, error.message) == (400, -32602, "Invalid or expired requestState")
    assert error.data == {"reason": "invalid_request_state"}


def replace_character(token: str, place: int) -> str:
    """Damage a token: put another character in this place."""
    other = "B" if token[place] == "A" else "A"
    return token[:place] + other + token[place:][1:]
