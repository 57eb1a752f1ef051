"""Servers of the official Python SDK, as its own documentation writes them, behind ports of their own.

`python -m tests.peers.python_sdk` prints {configuration: url} and serves until its stdin ends. Sources, at v2.3.0 of
modelcontextprotocol/python-sdk: docs_src/dependencies/tutorial003.py, examples/stories/mrtr/server.py,
docs_src/mrtr/tutorial001.py, docs/advanced/low-level-server.md.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable  # noqa: TC003 - the SDK reads annotations at run time
from typing import Annotated, Any

import anyio
import uvicorn
from mcp.server import MCPServer, Server, ServerRequestContext
from mcp.server.mcpserver import Context, Elicit, Resolve
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestedSchema,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)
from pydantic import BaseModel, Field

CONFIRM: ElicitRequestedSchema = {
    "type": "object",
    "properties": {"confirm": {"type": "boolean", "description": "Proceed with the deployment?"}},
    "required": ["confirm"],
}
REGION: ElicitRequestedSchema = {
    "type": "object",
    "properties": {"region": {"type": "string"}},
    "required": ["region"],
}


class Backorder(BaseModel):
    confirm: bool = Field(description="Order anyway and wait?")


async def confirm_backorder(title: str) -> Backorder | Elicit[Backorder]:
    return Elicit(f"{title!r} is out of stock (2-3 weeks). Order anyway?", Backorder)


def resolver() -> MCPServer:
    """Ask by the SDK's resolver, with its default security."""
    mcp = MCPServer("Bookshop")

    @mcp.tool()
    async def order_book(title: str, backorder: Annotated[Backorder, Resolve(confirm_backorder)]) -> str:
        """Order a book from the shop."""
        return f"Backordered {title!r}." if backorder.confirm else "No order placed."

    @mcp.tool()
    async def reserve_book(title: str, backorder: Annotated[Backorder, Resolve(confirm_backorder)]) -> str:
        """Reserve a book."""
        return f"Reserved {title!r}." if backorder.confirm else "Not reserved."

    return mcp


def by_hand() -> MCPServer:
    """Ask by a result written by hand, with its default security."""
    mcp = MCPServer("mrtr-example")

    async def ask(env: str, ctx: Context[Any], what: str) -> str | InputRequiredResult:
        responses = ctx.input_responses
        if responses is None or "confirm" not in responses:
            params = ElicitRequestFormParams(message=f"{what} {env}?", requested_schema=CONFIRM)
            return InputRequiredResult(
                input_requests={"confirm": ElicitRequest(params=params)}, request_state="awaiting-confirm"
            )
        assert ctx.request_state == "awaiting-confirm", ctx.request_state
        answer = responses["confirm"]
        agreed = (
            isinstance(answer, ElicitResult) and answer.action == "accept" and (answer.content or {}).get("confirm")
        )
        return f"{what} {env}: done" if agreed else f"{what} {env}: cancelled"

    @mcp.tool()
    async def deploy(env: str, ctx: Context[Any]) -> str | InputRequiredResult:
        """Deploy to an environment, asking the user to confirm first."""
        return await ask(env, ctx, "Deploy to")

    @mcp.tool()
    async def remove(env: str, ctx: Context[Any]) -> str | InputRequiredResult:
        """Remove an environment, asking the user to confirm first."""
        return await ask(env, ctx, "Remove")

    return mcp


def low_level() -> Server[Any]:
    """Ask from the low-level server, which installs nothing by itself."""

    async def list_tools(_ctx: ServerRequestContext[Any], _params: PaginatedRequestParams | None) -> ListToolsResult:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        return ListToolsResult(tools=[Tool(name=name, input_schema=schema) for name in ("provision", "replace")])

    async def call_tool(
        _ctx: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        answer = (params.input_responses or {}).get("region")
        if not isinstance(answer, ElicitResult) or answer.content is None:
            asked = ElicitRequest(params=ElicitRequestFormParams(message="Which region?", requested_schema=REGION))
            return InputRequiredResult(input_requests={"region": asked}, request_state="provision-v1")
        text = f"{params.name} {(params.arguments or {})['name']!r} in {answer.content['region']}."
        return CallToolResult(content=[TextContent(type="text", text=text)])

    return Server("Provisioner", on_list_tools=list_tools, on_call_tool=call_tool)


def low_level_sealed() -> Server[Any]:
    """Seal what the low-level server leaves, by the one line that its documentation gives."""
    server = low_level()
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=server.name))
    return server


SERVERS: dict[str, Callable[[], MCPServer | Server[Any]]] = {
    "Resolve": resolver,
    "by hand": by_hand,
    "low level": low_level,
    "low level, sealed": low_level_sealed,
}


async def serve() -> None:
    """Serve all of them, each on a free port, until stdin ends."""
    async with anyio.create_task_group() as group:
        urls = {}
        for name, make in SERVERS.items():
            listening = socket.create_server(("127.0.0.1", 0))
            urls[name] = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
            config = uvicorn.Config(make().streamable_http_app(), log_level="critical")
            group.start_soon(uvicorn.Server(config).serve, [listening])
        sys.stdout.write(json.dumps(urls) + "\n")
        sys.stdout.flush()
        await anyio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)
        group.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(serve)
