"""The surroundings of a call of an adopted server: its lifespan, its event loop, its caller and its session state."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from fastmcp import Context as FastContext
from fastmcp import FastMCP
from fastmcp.server.auth import require_scopes
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.request_state import RequestStateBoundary
from mcp_types import EmptyResult, ListToolsResult, SetLevelRequestParams, Tool

from mcp_functions import serve, tool
from mcp_functions.adopt import adopt
from mcp_functions.handlers import catalog
from mcp_functions_harness.testing import Conversation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp.server.context import ServerRequestContext

    from mcp_functions.protocol.wire_types import Implementation

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


def test_only_the_first_call_enters_the_lifespan() -> None:
    entered: list[int] = []

    @asynccontextmanager
    async def opened(_server: MCPServer[dict[str, int]]) -> AsyncIterator[dict[str, int]]:
        entered.append(1)
        yield {"opened": len(entered)}

    server = MCPServer("one", lifespan=opened)

    @server.tool()
    async def look(ctx: Context) -> int:
        return int(ctx.request_context.lifespan_context["opened"])

    handler = serve(*adopt(server))
    assert entered == []
    assert [Conversation(handler).call().text for _ in range(3)] == ["1", "1", "1"]


def test_adopt_sees_a_handler_that_the_lifespan_adds_if_a_list_needs_the_lifespan() -> None:
    @asynccontextmanager
    async def opened(server: Server[Any]) -> AsyncIterator[dict[str, Tool]]:
        server.add_request_handler("logging/setLevel", SetLevelRequestParams, answer_nothing)
        yield {"look": Tool(name="look", input_schema={"type": "object"})}

    async def list_tools(ctx: ServerRequestContext[Any], _params: object) -> ListToolsResult:
        return ListToolsResult(tools=[ctx.lifespan_context["look"]])

    async def answer_nothing(_ctx: object, _params: object) -> EmptyResult:
        return EmptyResult()

    (look, _unlisted) = adopt(Server("one", lifespan=opened, on_list_tools=list_tools))
    assert (look.name, look.logs) == ("look", True)


@pytest.mark.parametrize(("cursors", "error"), [(1, "returns the cursor '0' again"), (10_000, "more than 1000 pages")])
def test_adopt_refuses_a_list_whose_pages_never_end(cursors: int, error: str) -> None:
    pages = count()

    async def list_tools(_ctx: object, _params: object) -> ListToolsResult:
        return ListToolsResult(tools=[], next_cursor=str(next(pages) % cursors))

    with pytest.raises(ValueError, match=f"tools/list .*{error}"):
        adopt(Server("one", on_list_tools=list_tools))


def test_the_next_call_enters_a_lifespan_that_failed_before() -> None:
    attempts: list[int] = []

    @asynccontextmanager
    async def opened(_server: MCPServer[None]) -> AsyncIterator[None]:
        attempts.append(1)
        if len(attempts) == 1:
            message = "the database is starting"
            raise ConnectionError(message)
        yield None

    server = MCPServer("one", lifespan=opened)
    server.add_tool(lambda: "open", name="look")
    handler = serve(*adopt(server))
    first = Conversation(handler).call()
    assert first.error == {"code": -32603, "message": "Internal server error"}
    assert Conversation(handler).call().text == "open"


def test_all_calls_of_an_adopted_server_run_in_one_event_loop() -> None:
    server = MCPServer("one")
    loops: list[object] = []

    @server.tool()
    async def look() -> str:
        loops.append(asyncio.get_running_loop())
        return "seen"

    handler = serve(*adopt(server))
    assert [Conversation(handler).call().text for _ in range(2)] == ["seen", "seen"]
    assert loops[0] is loops[1]


def test_an_adopted_tool_gets_the_subject_and_scopes_but_not_the_token() -> None:
    server = MCPServer("one")

    @server.tool()
    async def whoami() -> dict[str, Any]:
        token = get_access_token()
        return token.model_dump(include={"token", "subject", "scopes"}) if token else {}

    handler = serve(*adopt(server))
    known = Conversation(handler, principal="ada", scopes=["read"]).call().result["structuredContent"]
    assert known.pop("token").startswith("caller-")  # a fingerprint, which opens nothing
    assert known == {"subject": "ada", "scopes": ["read"]}
    assert Conversation(handler).call().result["structuredContent"] == {}


def test_a_tool_that_fastmcp_shows_to_some_callers_is_listed_but_refuses_the_others() -> None:
    server = FastMCP("one")

    @server.tool(auth=require_scopes("write"))
    def erase() -> str:
        return "erased"

    handlers = adopt(server)
    assert [handler.key for handler in handlers if handler.kind == "tool"] == ["erase", "*"]
    handler = serve(*handlers)
    assert Conversation(handler, principal="ada", scopes=["write"]).call("erase").text == "erased"
    conversation = Conversation(handler, principal="bob", scopes=["read"]).call("erase")
    assert "erased" not in str(conversation.body)


def test_the_session_state_of_fastmcp_ends_with_the_call() -> None:
    server = FastMCP("one")

    @server.tool
    async def count(ctx: FastContext) -> int:
        number = (await ctx.get_state("n") or 0) + 1
        await ctx.set_state("n", number)
        return number

    handler = serve(*adopt(server))
    assert [Conversation(handler, principal=who).call().text for who in ("ada", "ada", "bob")] == ["1", "1", "1"]


def test_adopting_a_server_keeps_its_own_request_state_middleware() -> None:
    server = MCPServer("one")
    adopt(server)
    assert any(isinstance(each, RequestStateBoundary) for each in server.middleware)


def test_an_adopted_server_and_handlers_of_this_toolkit_share_a_function() -> None:
    server = MCPServer("one", version="3", instructions="Be kind.")
    server.add_tool(lambda: "adopted", name="zebra")
    server.add_tool(lambda: "adopted", name="ant")

    @tool
    def own() -> str:
        """Is of this toolkit."""
        return "own"

    listed = catalog.build([own, *adopt(server)])
    assert [entry["name"] for entry in listed["tools"]] == ["own", "zebra", "ant"]
    assert listed["servers"][0]["instructions"] == "Be kind."
    handler = serve(own, *adopt(server))
    assert [Conversation(handler).call(name).text for name in ("own", "ant")] == ["own", "adopted"]


def test_two_adopted_servers_share_an_endpoint_and_each_serves_what_it_lists() -> None:
    first, second = MCPServer("first", instructions="One."), MCPServer("second", instructions="Two.")
    first.add_tool(lambda: "1", name="one")
    second.add_tool(lambda: "2", name="two")
    default: Implementation = {"name": "the deployment"}
    listed = catalog.build(adopt(first), "first")
    assert listed["functions"]["tools"] == {"*": "first", "one": "first"}
    assert catalog.server_info(listed, default)["name"] == "first"
    both = catalog.build_project({"first": adopt(first), "second": adopt(second)})
    assert both["functions"]["tools"] == {"one": "first", "two": "second"}
    assert catalog.server_info(both, default) == default
    handler = serve(*adopt(first), *adopt(second))
    assert [Conversation(handler).call(name).text for name in ("one", "two")] == ["1", "2"]


def test_two_adopted_servers_each_serve_their_templates_without_the_optional_values() -> None:
    servers = [MCPServer(name) for name in ("ant", "bee")]
    for server in servers:

        @server.resource(f"{server.name}://{{key}}{{?page}}")
        def entry(key: str, page: str = "1") -> str:
            return f"{key} {page}"

    handler = serve(*(each for server in servers for each in adopt(server)))
    contents = [Conversation(handler).read(f"{name}://x").result["contents"] for name in ("ant", "bee")]
    assert [content["text"] for [content] in contents] == ["x 1", "x 1"]


def test_the_log_line_of_a_servers_error_has_the_code_that_the_client_reads(caplog: pytest.LogCaptureFixture) -> None:
    server = MCPServer("one")

    @server.resource("notes://{name}")
    def note(name: str) -> str:
        return name

    with caplog.at_level("INFO", "mcp_functions"):
        talk = Conversation(serve(*adopt(server))).read("letters://ann")
    assert talk.error["code"] == -32602
    assert caplog.messages[-1] == "refused: -32602 AdoptedError"
