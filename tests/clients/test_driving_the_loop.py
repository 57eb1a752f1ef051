"""A client program keeps the state and sends each round itself (python-sdk, "Multi-round-trip requests").

"The process that renders the question to the user is not the process that called call_tool."
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mcp import MCPError
from mcp_types import CallToolResult, ElicitResult, InputRequiredResult, InputResponses

from mcp_functions_harness import Harness
from tests.clients.conftest import FUNCTIONS
from tests.clients.people import Person

if TYPE_CHECKING:
    from mcp import Client

RESOLVE = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
DUPLICATE = "Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created."


def test_each_round_of_a_client_that_drives_the_loop_is_one_invocation(harness: Harness) -> None:
    async def legs(client: Client) -> list[int]:
        counts, state = [], None
        responses: InputResponses = {}
        accepted = ElicitResult(action="accept", content={"resolution": "Duplicate", "duplicateOfId": 4301})
        for _ in range(3):
            before = len(harness.invocations)
            result = await client.session.call_tool(
                "update_work_item",
                RESOLVE,
                input_responses=responses or None,
                request_state=state,
                allow_input_required=True,
            )
            counts.append([invocation.folder for invocation in harness.invocations[before:]].count("update_work_item"))
            if isinstance(result, InputRequiredResult):
                state, (key,) = result.request_state, list(result.input_requests or {})
                responses = {key: accepted}
        assert isinstance(result, CallToolResult)
        return counts

    assert Person().use(harness.url, legs) == [1, 1, 1]


def test_a_conversation_passes_from_one_client_process_to_the_next(harness: Harness, tmp_path: Path) -> None:
    conversation = _start_client(tmp_path)
    asked = _run_round(harness.url, conversation)
    assert list(asked["inputRequests"]) == ["resolution"]
    asked = _run_round(harness.url, conversation, resolution={"resolution": "Duplicate"})
    assert list(asked["inputRequests"]) == ["duplicate_of"]
    answer = _run_round(harness.url, conversation, duplicate_of={"duplicateOfId": 4301})
    assert answer["content"] == [{"type": "text", "text": DUPLICATE}]


def test_a_conversation_continues_on_a_restarted_server(tmp_path: Path) -> None:
    conversation = _start_client(tmp_path)
    with Harness(FUNCTIONS, state_dir=tmp_path / "state") as monday:
        _run_round(f"{monday.url}/update_work_item", conversation)
    with Harness(FUNCTIONS, state_dir=tmp_path / "state") as tuesday:
        answer = _run_round(f"{tuesday.url}/update_work_item", conversation, resolution={"resolution": "Fixed"})
    assert answer["content"] == [{"type": "text", "text": "Bug #4522 resolved as Fixed. State set to Resolved."}]


def test_a_client_that_changes_the_state_gets_the_error_of_the_specification(harness: Harness) -> None:
    async def legs(client: Client) -> CallToolResult | InputRequiredResult:
        first = await client.session.call_tool("update_work_item", RESOLVE, allow_input_required=True)
        assert isinstance(first, InputRequiredResult)
        assert first.request_state
        other = {"A": "B"}.get(first.request_state[40], "A")
        changed = first.request_state[:40] + other + first.request_state[41:]
        answers: InputResponses = {"resolution": ElicitResult(action="accept", content={"resolution": "Fixed"})}
        return await client.session.call_tool(
            "update_work_item", RESOLVE, input_responses=answers, request_state=changed, allow_input_required=True
        )

    with pytest.raises(MCPError) as error:
        Person().use(harness.url, legs)
    assert (error.value.code, error.value.message) == (-32602, "Invalid or expired requestState")


def _start_client(folder: Path) -> Path:
    conversation = folder / "conversation.json"
    conversation.write_text(json.dumps({"name": "update_work_item", "arguments": RESOLVE}), encoding="utf-8")
    return conversation


def _run_round(url: str, conversation: Path, **contents: dict[str, Any]) -> dict[str, Any]:
    answers = {key: {"action": "accept", "content": content} for key, content in contents.items()}
    command = [sys.executable, str(Path(__file__).with_name("one_leg.py")), url, str(conversation), json.dumps(answers)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)  # noqa: S603 - our own script
    document: dict[str, Any] = json.loads(done.stdout)
    return document
