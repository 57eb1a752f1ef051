"""A server on containers seals its states with KMS: any process of its fleet continues a conversation."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fastmcp import Context as FastContext
from fastmcp import FastMCP
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.runner import modern_on_request
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

from mcp_functions.adopt import seal_states
from mcp_functions.adopt.channel import SilentChannel
from mcp_functions.adopt.server import find_low_level
from mcp_functions.protocol.errors import TemporarilyUnavailable
from mcp_functions.seal.data_keys import KmsKey

if TYPE_CHECKING:
    from collections.abc import Callable

FORM = {"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}
CALLER: dict[str, str | None] = {"name": "ada"}
ANSWER = {"when": {"action": "accept", "content": {"day": "Monday"}}}


def ask_day(ctx: Context | FastContext) -> InputRequiredResult | str:
    """Ask for a day, and remember a word in the state."""
    if ctx.request_state is None:
        form = ElicitRequestFormParams(message="When?", requested_schema=FORM)
        return InputRequiredResult(input_requests={"when": ElicitRequest(params=form)}, request_state="remembered")
    answer: Any = (ctx.input_responses or {})["when"]
    return f"{ctx.request_state} {answer.content['day']}"


def official() -> MCPServer[Any]:
    server = MCPServer("calendar")

    @server.tool()
    async def book(ctx: Context) -> InputRequiredResult | str:
        return ask_day(ctx)

    @server.tool()
    async def cancel(ctx: Context) -> InputRequiredResult | str:
        return ask_day(ctx)

    return server


def fast() -> FastMCP[Any]:
    server = FastMCP("calendar")

    @server.tool(output_schema=None)
    async def book(ctx: FastContext) -> Any:  # noqa: ANN401 - FastMCP reads it
        return ask_day(ctx)

    @server.tool(output_schema=None)
    async def cancel(ctx: FastContext) -> Any:  # noqa: ANN401 - FastMCP reads it
        return ask_day(ctx)

    return server


BOTH = {"mcp": official, "fastmcp": fast}
each_library = pytest.mark.parametrize("make", BOTH.values(), ids=BOTH)


def sealed(make: Callable[[], object], **options: Any) -> object:  # noqa: ANN401 - of seal_states
    """Make a process of a fleet: a server of its own, with data keys of its own."""
    server = make()
    given = {"keys": os.environ["MCP_KMS_KEYS"].split(","), "principal": lambda _ctx: CALLER["name"]}
    seal_states(server, **{**given, **options})
    return server


def call(server: object, name: str = "book", **params: object) -> dict[str, Any]:
    """Send one request of 2026-07-28."""
    handle = modern_on_request(find_low_level(server), {})
    request = {"name": name, "arguments": {}, "_meta": META, **params}
    return asyncio.run(_send(handle, request))


async def _send(handle: Any, request: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - of the SDK
    result: dict[str, Any] = await handle(SilentChannel(), "tools/call", request)
    return result


@each_library
def test_another_member_of_the_fleet_continues_a_conversation(make: Callable[[], object]) -> None:
    first = call(sealed(make))
    assert first["requestState"].startswith("ks1.")
    second = call(sealed(make), requestState=first["requestState"], inputResponses=ANSWER)
    assert second["content"][0]["text"] == "remembered Monday"


@each_library
def test_another_process_that_shares_only_kms_continues_it(make: Callable[[], object]) -> None:
    token = call(sealed(make))["requestState"]
    library = next(name for name, each in BOTH.items() if each is make)
    command = [sys.executable, __file__, library, token]
    root = Path(__file__).parents[2]
    ran = subprocess.run(  # noqa: S603 - this file
        command, cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, check=True
    )
    assert json.loads(ran.stdout)["content"][0]["text"] == "remembered Monday"


@each_library
@pytest.mark.parametrize("other", [{"caller": "bob"}, {"caller": None}, {"name": "cancel"}, {"service": "diary"}])
def test_another_person_tool_or_service_cannot_use_a_state(make: Callable[[], object], other: dict[str, Any]) -> None:
    token = call(sealed(make))["requestState"]
    server = sealed(make, **({"service": other["service"]} if "service" in other else {}))
    CALLER["name"] = other.get("caller", "ada")
    try:
        with pytest.raises(MCPError) as refused:
            call(server, other.get("name", "book"), requestState=token, inputResponses=ANSWER)
    finally:
        CALLER["name"] = "ada"
    assert (refused.value.code, refused.value.error.message) == (-32602, "Invalid or expired requestState")


@each_library
def test_nobody_asks_without_a_principal_unless_the_author_says_so(make: Callable[[], object]) -> None:
    CALLER["name"] = None
    try:
        with pytest.raises(MCPError):
            call(sealed(make))
        token = call(sealed(make, principal=None, anonymous=True))["requestState"]
    finally:
        CALLER["name"] = "ada"
    anyone = sealed(make, principal=None, anonymous=True)
    assert call(anyone, requestState=token, inputResponses=ANSWER)["content"][0]["text"] == "remembered Monday"


@pytest.mark.parametrize("options", [{}, {"anonymous": True, "principal": lambda _ctx: "ada"}])
def test_whose_states_they_are_has_to_be_said(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="anonymous=True"):
        seal_states(official(), keys=["arn:aws:kms:eu-west-1:111122223333:key/0a"], **options)


class Watched:
    """A wrapping that notes the thread and the purpose of each call."""

    def __init__(self) -> None:
        self._kms = KmsKey(os.environ["MCP_KMS_KEYS"].split(",")[0])
        self.id, self.threads, self.purposes, self.is_down = self._kms.id, set[object](), set[str](), False

    def _note(self, context: dict[str, str]) -> None:
        self.threads.add(threading.current_thread())
        self.purposes.add(context["purpose"])
        if self.is_down:
            raise TemporarilyUnavailable(reason="kms:down")

    def generate(self, context: dict[str, str]) -> tuple[bytes, bytes]:
        self._note(context)
        return self._kms.generate(context)

    def unwrap(self, wrapped: bytes, context: dict[str, str]) -> bytes:
        self._note(context)
        return self._kms.unwrap(wrapped, context)


@each_library
def test_kms_never_blocks_the_loop_and_knows_what_the_keys_are_for(make: Callable[[], object]) -> None:
    watched = Watched()
    token = call(sealed(make, keys=[watched]))["requestState"]
    call(sealed(make, keys=[watched]), requestState=token, inputResponses=ANSWER)
    assert watched.threads
    assert threading.main_thread() not in watched.threads  # asyncio.run has its loop in it
    assert watched.purposes == {"mcp-foreign-state"}


def test_an_outage_of_kms_loses_no_conversation() -> None:
    token = call(sealed(official))["requestState"]
    watched = Watched()
    server = sealed(official, keys=[watched])
    watched.is_down = True
    with pytest.raises(MCPError) as refused:
        call(server, requestState=token, inputResponses=ANSWER)
    assert (refused.value.error.message, refused.value.error.data) == ("Temporarily unavailable", {"retryable": True})
    watched.is_down = False
    assert call(server, requestState=token, inputResponses=ANSWER)["content"][0]["text"] == "remembered Monday"


if __name__ == "__main__":
    library, token = sys.argv[1:]
    sys.stdout.write(json.dumps(call(sealed(BOTH[library]), requestState=token, inputResponses=ANSWER)))
