"""Clients of 2025 get sampling and roots requests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions_harness import Harness
from tests.clients.earlier import ASKED, EVERYTHING, SPEAKERS
from tests.clients.talks import accept, end

if TYPE_CHECKING:
    from collections.abc import Iterator

FUNCTIONS = Path(__file__).parents[1] / "conformance" / "functions"
CLIENTS = ASKED if EVERYTHING else ["Python `mcp` 1.30", "TypeScript `sdk` 1.32"]
SAID: dict[str, Any] = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "small"}
TALKS: dict[str, tuple[dict[str, Any], list[dict[str, Any]], list[str], str]] = {
    "test_sampling": ({"prompt": "The capital of France?"}, [SAID], ["The capital of France?"], "LLM response: Paris"),
    "test_input_required_result_list_roots": ({}, [], ["roots"], "file:///work/printers"),
    "test_elicitation": (
        {"message": "Who are you?"},
        [accept(username="ada", email="ada@example.com")],
        ["Who are you?"],
        'User response: accept, {"username":"ada","email":"ada@example.com"}',
    ),
}


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    with Harness(FUNCTIONS, state_dir=tmp_path_factory.mktemp("state")) as running:
        yield running


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_of_2025_gets_sampling_and_roots_requests(harness: Harness, client: str) -> None:
    calls = [
        {
            "url": harness.url,
            "method": "tools/call",
            "params": {"name": name, "arguments": arguments},
            "answers": answers,
        }
        for name, (arguments, answers, _asked, _end) in TALKS.items()
    ]
    held = dict(zip(TALKS, SPEAKERS[client].say(calls), strict=True))
    came_of_it = {name: (said["asked"], end(said)) for name, said in held.items()}
    assert came_of_it == {name: (asked, ended) for name, (_arguments, _answers, asked, ended) in TALKS.items()}
