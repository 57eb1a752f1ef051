"""An adopted server returns the same lists and results as the original, to the official client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from fastmcp import FastMCP
from mcp.server.mcpserver import MCPServer

from mcp_functions import serve
from mcp_functions.adopt import adopt
from mcp_functions_harness.testing import Conversation
from tests.adopt.talking import LISTS, Step, load, talk
from tests.adopt.talks import CALLS, MODES, TALKS, without_revision

if TYPE_CHECKING:
    from mcp_functions_harness import Harness

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_an_adopted_server_returns_the_lists_and_results_of_the_original(
    adopted_harness: tuple[str, Harness], mode: str
) -> None:
    name, harness = adopted_harness
    server = load(name)
    steps: list[Step] = [*((listed, {}) for listed in LISTS), *CALLS[name]]
    expected, answered = talk(server, steps, mode=mode), talk(harness.url, steps, mode=mode)
    for step, one, other in zip(["hello", *steps, "end"], expected, answered, strict=True):
        assert _as_of_2026(other) == _as_of_2026(one), step


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_an_adopted_server_asks_the_questions_of_the_original(adopted_harness: tuple[str, Harness], mode: str) -> None:
    name, harness = adopted_harness
    for step, answers in TALKS[name]:
        expected = talk(load(name), [step], mode="legacy", answers=answers)
        answered = talk(harness.url, [step], mode=mode, answers=answers)
        assert without_revision(answered[1:]) == without_revision(expected[1:]), step


def _as_of_2026(said: dict[str, Any]) -> dict[str, Any]:
    """Leave out how errors differ at 2025-11-25: this toolkit sends that revision's code of a missing resource.

    The original sends code 0 and the text of an exception there, which this toolkit never does. Nor does it call a
    missing argument of a prompt an error of the server, as an MCPServer does at both revisions.
    """
    match said:
        case {"code": -32602, "message": str(message)} if message.startswith("Missing required arguments"):
            return {"code": -32603}
        case {"code": -32002}:
            return {**said, "code": -32602}
        case {"code": 0 | -32603}:
            return {"code": -32603}
        case {"code": -32601}:
            return {"code": -32601}
    return said


@pytest.mark.parametrize("make", [MCPServer, FastMCP])
def test_a_prompt_without_a_required_argument_is_refused_and_is_no_crash(
    make: Any,  # noqa: ANN401 - of two libraries
    caplog: pytest.LogCaptureFixture,
) -> None:
    def greet(name: str, tone: str = "warm") -> str:
        return f"Greet {name} in a {tone} tone"

    server = make("letters")
    server.prompt()(greet)
    function = serve(*adopt(server))
    with caplog.at_level("ERROR", "mcp_functions"):
        talk = Conversation(function).get("greet")
    assert talk.body["error"]["code"] == -32602
    assert "name" in talk.body["error"]["message"]
    assert caplog.records == []
    assert Conversation(function).get("greet", name="Bo").done
