"""Servers with one gate each: a handler that asks its user before it works, in every way that the libraries have.

Each maker takes a list, to which the gate adds a word when it has been passed. The handler has the name of its maker.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastmcp import Context as FastContext
from fastmcp import FastMCP
from fastmcp.dependencies import CurrentContext, Depends
from fastmcp.server.middleware import Middleware, MiddlewareContext
from mcp.server import Server
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ClientCapabilities,
    ElicitationCapability,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    ListToolsResult,
    TextContent,
    Tool,
)
from pydantic import BaseModel

MODERN = "2026-07-28"
FORM: dict[str, Any] = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
ASKS = ClientCapabilities(elicitation=ElicitationCapability())


class Ok(BaseModel):
    """Whether the person agrees."""

    ok: bool


def returned_question(message: str) -> InputRequiredResult:
    """Ask in the way of 2026-07-28."""
    asked = ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=FORM))
    return InputRequiredResult(input_requests={"sure": asked}, request_state="asked")


def agrees(answers: Any) -> bool:
    answer = (answers or {}).get("sure")
    return answer is not None and answer.action == "accept" and bool(answer.content["ok"])


async def asked_in_the_middle(ctx: Context) -> bool:
    outcome = await ctx.elicit("Delete it?", Ok)
    return outcome.action == "accept" and outcome.data.ok


def two_ways(done: list[str]) -> MCPServer:
    """Make a server that has a way of its own to ask at 2026-07-28, and does not ask some older clients."""
    server = MCPServer("two ways")

    @server.tool(name="two_ways")
    async def gate(ctx: Context) -> str | InputRequiredResult:
        if ctx.protocol_version == MODERN:
            if not agrees(ctx.input_responses):
                return returned_question("Delete it?")
        elif ctx.session.check_client_capability(ASKS) and not await asked_in_the_middle(ctx):
            return "kept"
        done.append("passed")
        return "deleted"

    return server


def fast_two_ways(done: list[str]) -> FastMCP:
    server = FastMCP("fast two ways")

    @server.tool(name="fast_two_ways")
    async def gate(ctx: FastContext) -> Any:
        if ctx.request_context is not None and ctx.request_context.protocol_version == MODERN:
            if not agrees(ctx.input_responses):
                return returned_question("Delete it?")
        elif ctx.session.check_client_capability(ASKS) and (await ctx.elicit("Delete it?", bool)).action != "accept":
            return "kept"
        done.append("passed")
        return "deleted"

    return server


def low_two_ways(done: list[str]) -> Server[Any]:
    async def list_tools(_ctx: object, _params: object) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="low_two_ways", input_schema={"type": "object"})])

    async def call_tool(ctx: Any, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        if ctx.protocol_version == MODERN:
            if not agrees(params.input_responses):
                return returned_question("Delete it?")
        elif ctx.session.check_client_capability(ASKS):
            await ctx.session.elicit_form("Delete it?", FORM)
        done.append("passed")
        return CallToolResult(content=[TextContent(type="text", text="deleted")])

    return Server("low two ways", on_list_tools=list_tools, on_call_tool=call_tool)


def middle(done: list[str]) -> MCPServer:
    server = MCPServer("middle")

    @server.tool(name="middle")
    async def gate(ctx: Context) -> str:
        if not await asked_in_the_middle(ctx):
            return "kept"
        done.append("passed")
        return "deleted"

    return server


def fast_middle(done: list[str]) -> FastMCP:
    server = FastMCP("fast middle")

    @server.tool(name="fast_middle")
    async def gate(ctx: FastContext) -> str:
        if (await ctx.elicit("Delete it?", bool)).action != "accept":
            return "kept"
        done.append("passed")
        return "deleted"

    return server


def resolver(done: list[str]) -> MCPServer:
    server = MCPServer("resolver")

    @server.tool(name="resolver")
    async def gate(ok: Annotated[Ok, Resolve(ask_in_a_resolver)]) -> str:
        if not ok.ok:
            return "kept"
        done.append("passed")
        return "deleted"

    return server


def ask_in_a_resolver() -> Elicit[Ok]:
    return Elicit("Delete it?", Ok)


def resolver_and_middle(done: list[str]) -> MCPServer:
    """Make a server that asks in both ways in one call."""
    server = MCPServer("both")

    @server.tool(name="resolver_and_middle")
    async def gate(ctx: Context, ok: Annotated[Ok, Resolve(ask_in_a_resolver)]) -> str:
        if not ok.ok:
            return "kept"
        outcome = await ctx.elicit("Really?", Ok)
        if outcome.action != "accept" or not outcome.data.ok:
            return "kept"
        done.append("passed")
        return "deleted"

    return server


async def ask_in_a_dependency(ctx: FastContext = CurrentContext()) -> bool:
    return (await ctx.elicit("Delete it?", bool)).action == "accept"


def dependency(done: list[str]) -> FastMCP:
    server = FastMCP("dependency")

    @server.tool(name="dependency")
    async def gate(ok: bool = Depends(ask_in_a_dependency)) -> str:
        if not ok:
            return "kept"
        done.append("passed")
        return "deleted"

    return server


class Guard(Middleware):
    """Asks before each call."""

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: Any) -> Any:
        asked = await context.fastmcp_context.elicit("Delete it?", bool)
        if asked.action != "accept":
            raise PermissionError
        return await call_next(context)


def fast_middleware(done: list[str]) -> FastMCP:
    server = FastMCP("fast middleware", middleware=[Guard()])

    @server.tool(name="fast_middleware")
    async def gate() -> str:
        done.append("passed")
        return "deleted"

    return server


def middleware(done: list[str]) -> MCPServer:
    async def guard(ctx: Any, call_next: Any) -> Any:
        if ctx.method == "tools/call":
            asked = await ctx.session.elicit_form("Delete it?", FORM)
            if asked.action != "accept":
                raise PermissionError
        return await call_next(ctx)

    server = MCPServer("middleware", middleware=[guard])

    @server.tool(name="middleware")
    async def gate() -> str:
        done.append("passed")
        return "deleted"

    return server


def prompt(done: list[str]) -> MCPServer:
    server = MCPServer("prompt")

    @server.prompt(name="prompt")
    async def gate(ctx: Context) -> str:
        if not await asked_in_the_middle(ctx):
            return "kept"
        done.append("passed")
        return "deleted"

    return server


def resource(done: list[str]) -> MCPServer:
    server = MCPServer("resource")

    @server.resource("gate://{name}", name="resource")
    async def gate(name: str, ctx: Context) -> str:
        if not await asked_in_the_middle(ctx):
            return "kept"
        done.append(name)
        return "deleted"

    return server


def catching(done: list[str]) -> MCPServer:
    """Make a server that goes on if its client cannot be asked."""
    server = MCPServer("catching")

    @server.tool(name="catching")
    async def gate(ctx: Context) -> str:
        try:
            ok = await asked_in_the_middle(ctx)
        except Exception:
            ok = True
        if ok:
            done.append("passed")
        return "deleted" if ok else "kept"

    return server


def fast_catching(done: list[str]) -> FastMCP:
    server = FastMCP("fast catching")

    @server.tool(name="fast_catching")
    async def gate(ctx: FastContext) -> str:
        try:
            ok = (await ctx.elicit("Delete it?", bool)).action == "accept"
        except Exception:
            ok = True
        if ok:
            done.append("passed")
        return "deleted" if ok else "kept"

    return server


OWN_WAY = (two_ways, fast_two_ways, low_two_ways, resolver)  # they ask at 2026-07-28 without `replay`
IN_THE_MIDDLE = (middle, fast_middle, dependency, fast_middleware, middleware, prompt, resource)
BOTH = (resolver_and_middle,)
CATCHING = (catching, fast_catching)
