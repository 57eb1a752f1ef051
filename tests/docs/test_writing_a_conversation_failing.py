"""The page "Writing a conversation", on failures: exceptions, and the status of each error."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_functions import ToolError, prompt, resource, serve
from mcp_functions.legacy import errors as legacy_errors
from mcp_functions.protocol import errors
from mcp_functions.protocol.errors import McpError
from mcp_functions_harness.testing import Conversation

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[2] / "docs/writing-a-conversation.md"


def test_the_model_reads_the_text_of_an_exception_in_errors(page: dict[str, Any]) -> None:
    talk = Conversation(page["counting"])
    assert talk.call(person="eve").text == "Nobody is called eve."
    assert talk.call(person="ann").text == "3"


def test_a_client_reads_the_text_of_a_resource_or_prompt_that_fails() -> None:
    @resource("rooms://{number}")
    def room(number: int) -> str:
        message = f"There is no room {number}."
        raise ToolError(message)

    @prompt
    def plan(day: str) -> str:
        message = f"Nothing is open on {day}."
        raise ToolError(message)

    talk = Conversation(serve(room, plan))
    for error in (talk.read("rooms://7").error, talk.get(day="Monday").error):
        assert error["code"] == -32602
    assert talk.read("rooms://7").error["message"] == "There is no room 7."
    assert talk.get(day="Monday").error["message"] == "Nothing is open on Monday."


def test_a_crash_shows_the_client_no_details(page: dict[str, Any]) -> None:
    def seven() -> str:
        """Fail."""
        raise KeyError("seven")

    talk = Conversation(serve(page["tool"](errors=(LookupError,))(seven))).call()
    assert talk.text == "The tool seven failed unexpectedly. The server's log says why."
    assert "seven" in str(talk.raised)


def test_the_page_lists_the_http_status_of_every_error() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("| status | what it is for |")[2].partition("\n## ")[0]
    told = {int(status) for row in re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE) for status in row.split(", ")}
    assert {kind.status for kind in _kinds(McpError)} == told | {200}
    assert {kind.status for kind in _kinds(errors.InternalError)} == {200, 500, 503}
    assert {kind.__name__ for kind in _kinds(McpError) if kind.status == 404} == {"MethodNotFound", "SessionNotFound"}
    assert legacy_errors.SessionNotFound.status == 404


def _kinds(kind: type[McpError]) -> Iterator[type[McpError]]:
    yield kind
    for more in kind.__subclasses__():
        yield from _kinds(more)
