"""A call of an adopted server completes although a new process serves each request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.adopt.talking import load, talk
from tests.adopt.talks import MODES, OWN_ROUNDS, TALKS, without_revision

if TYPE_CHECKING:
    from mcp_functions_harness import Harness

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


def test_a_call_completes_if_each_request_reaches_another_process(restarting_harness: tuple[str, Harness]) -> None:
    name, harness = restarting_harness
    for step, answers in TALKS[name][:1]:
        expected = talk(load(name), [step], mode="legacy", answers=answers)
        for mode in MODES.values():
            answered = talk(harness.url, [step], mode=mode, answers=answers)
            assert without_revision(answered[1:]) == without_revision(expected[1:]), (mode, step)


def test_rounds_that_the_author_wrote_complete_if_each_request_reaches_another_process(
    restarting_harness: tuple[str, Harness],
) -> None:
    name, harness = restarting_harness
    for step, answers in OWN_ROUNDS.get(name, []):
        expected = talk(load(name), [step], mode="2026-07-28", answers=answers)
        for mode in MODES.values():
            answered = talk(harness.url, [step], mode=mode, answers=answers)
            assert without_revision(answered[1:]) == without_revision(expected[1:]), (mode, step)
