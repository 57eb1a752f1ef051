"""The clients of 2025, and those of 2026 as they speak to older servers, complete the sample functions.

Each client is one process that holds all its conversations, with a session each. `make clients` holds every one of
them, at each function's own endpoint too.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.clients.earlier import ASKED, EVERYTHING, HELD, SPEAKERS, TOLD, Heard
from tests.clients.talks import NO, PLACES, TALKS, end
from tests.conformance import test_conformance as suite

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions_harness import Harness

    RunClient = Callable[[str], Heard]

NAMES = list(TALKS) if EVERYTHING else HELD
HERE = PLACES if EVERYTHING else PLACES[:1]
# A function's own endpoint keeps questions if its handler needs the table; the others tell them in words.
KEEPS = {"pay_invoice"}
HELD_AT = [(name, place) for place in HERE for name in NAMES]
TOLD_AT = [at for at in HELD_AT if at[1] != PLACES[0] and TALKS[at[0]].asked and TALKS[at[0]].call[1] not in KEEPS]
ASKED_AT = [at for at in HELD_AT if at not in TOLD_AT]
# An older client gets the same text whatever its user would have answered.
TOLD_OF = [name for name in TALKS if name.partition(" ")[0] not in NO]


@pytest.fixture(scope="module")
def run_client(harness: Harness) -> RunClient:
    """Let a client hold its conversations, once."""

    @cache
    def heard(client: str) -> Heard:
        speaker = SPEAKERS[client]
        return speaker.hold(harness.url, *((NAMES, HERE) if speaker.asks else (TOLD_OF,)))

    return heard


@pytest.mark.parametrize("client", SPEAKERS)
def test_an_earlier_client_negotiates_its_revision_and_lists_every_sample(
    run_client: RunClient, client: str, harness: Harness
) -> None:
    run_client(client).is_of(SPEAKERS[client], harness)


@pytest.mark.parametrize(("name", "place"), ASKED_AT)
@pytest.mark.parametrize("client", ASKED)
def test_an_earlier_client_completes_the_conversation_of_each_sample(
    run_client: RunClient, client: str, name: str, place: str
) -> None:
    talk, held = TALKS[name], run_client(client).held[name, place]
    assert (held["asked"], end(held)) == (talk.asked, talk.end)


@pytest.mark.parametrize(("name", "place"), TOLD_AT)
@pytest.mark.parametrize("client", ASKED)
def test_a_function_without_a_table_returns_its_question_as_text_at_its_own_endpoint(
    run_client: RunClient, client: str, name: str, place: str
) -> None:
    held = run_client(client).held[name, place]
    assert held["asked"] == []
    assert "Not finished: this server has no table for questions" in end(held)
    assert TALKS[name].asked[0] in end(held)


@pytest.mark.parametrize("name", [name for name in TOLD_OF if not TALKS[name].asked])
@pytest.mark.parametrize("client", TOLD)
def test_a_client_that_does_not_reconnect_can_call_tools_without_questions(
    run_client: RunClient, client: str, name: str
) -> None:
    assert end(run_client(client).held[name, PLACES[0]]) == TALKS[name].end


@pytest.mark.parametrize("name", [name for name in TOLD_OF if TALKS[name].asked])
@pytest.mark.parametrize("client", TOLD)
def test_a_client_that_does_not_reconnect_gets_the_question_as_text(
    run_client: RunClient, client: str, name: str
) -> None:
    held, talk = run_client(client).held[name, PLACES[0]], TALKS[name]
    assert held["asked"] == []
    assert "Not finished: " in end(held)
    assert talk.asked[0] in end(held)


# --- what docs/compatibility.md says of all this ----------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs/compatibility.md").read_text(encoding="utf-8")
# test_python_client.py, test_typescript_client.py and test_ai_sdk.py
OF_2026 = ["Python `mcp` 2.3", "TypeScript `client` 2.4, pinned to the revision", "Vercel `@ai-sdk/mcp` 2.0"]


def test_the_pages_table_of_clients_lists_the_tested_clients() -> None:
    rows = re.findall(r"^\| ((?:Python|TypeScript|Vercel) .*) \|$", PAGE, re.MULTILINE)
    tested = [(name, "2026-07-28", "yes", "yes") for name in OF_2026]
    tested += [(each.name, each.revision, "yes", "yes" if each.asks else "in words") for each in SPEAKERS.values()]
    assert [tuple(row.split(" | ")) for row in rows] == tested


def test_the_compatibility_page_counts_the_scenarios_that_the_suite_must_pass() -> None:
    matches = re.findall(r"(\d+) of (\d+)(?: scenarios)? of\s(20\d\d-\d\d-\d\d)", PAGE)
    earlier = {revision: (known[0] - len(suite.UNADVERTISED), known[0]) for revision, known in suite.EARLIER.items()}
    assert {revision: (int(passed), int(there)) for passed, there, revision in matches} == {
        suite.REVISION: (suite.SCENARIOS, suite.SCENARIOS),
        **earlier,
    }
