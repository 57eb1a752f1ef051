"""Vercel's client of 2026 completes the sample functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.earlier import EVERYTHING, HELD, Heard, Speaker, ai_sdk
from tests.clients.talks import PLACES, TALKS, end

if TYPE_CHECKING:
    from mcp_functions_harness import Harness

SPEAKER = Speaker("Vercel `@ai-sdk/mcp` 2.0", "2026-07-28", ai_sdk("@ai-sdk/mcp"))
NAMES = list(TALKS) if EVERYTHING else HELD
HERE = PLACES if EVERYTHING else PLACES[:1]


@pytest.fixture(scope="module")
def heard(harness: Harness) -> Heard:
    return SPEAKER.hold(harness.url, NAMES, HERE)


def test_the_ai_sdk_speaks_the_revision_of_2026_and_lists_every_sample(heard: Heard, harness: Harness) -> None:
    heard.is_of(SPEAKER, harness)


@pytest.mark.parametrize("place", HERE)
@pytest.mark.parametrize("name", NAMES)
def test_the_ai_sdk_completes_the_conversation_of_each_sample(heard: Heard, name: str, place: str) -> None:
    talk, held = TALKS[name], heard.held[name, place]
    assert (held["asked"], end(held)) == (talk.asked, talk.end)
