"""A clinic, written for the low-level `Server`: its own lists, its own rounds, and names that it does not list."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)

Ctx = ServerRequestContext[dict[str, Any]]
FORM = {"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]}


@asynccontextmanager
async def open_wards(_server: Server[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    yield {"wards": ["A", "B"]}


def text(value: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=value)])


async def list_tools(ctx: Ctx, params: PaginatedRequestParams | None) -> ListToolsResult:
    """List a tool for each ward, page by page: the list needs what the lifespan opened."""
    wards = ctx.lifespan_context["wards"]
    start = int(params.cursor) if params and params.cursor else 0
    tool = Tool(name=f"ward_{wards[start]}", description="Visit a ward", input_schema={"type": "object"})
    return ListToolsResult(tools=[tool], next_cursor=str(start + 1) if start + 1 < len(wards) else None)


def question(message: str) -> ElicitRequest:
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=FORM))


async def call_tool(_ctx: Ctx, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
    if params.name == "ward_A":
        return text(f"visited with {params.arguments}")
    if params.name == "hidden":
        return text("not listed, and served")
    if params.name == "crash":
        raise RuntimeError("a secret of the clinic")
    if params.name != "ward_B":
        raise MCPError(code=-32602, message=f"no ward {params.name}", data={"wards": 2})
    known = params.request_state.split(",") if params.request_state else []
    answers = params.input_responses or {}
    if "visit" in answers:
        known.append(answers["visit"].content["day"])
    if len(known) < 2:
        asked = question(f"Which day for visit {len(known) + 1}?")
        return InputRequiredResult(input_requests={"visit": asked}, request_state=",".join(known))
    return text(f"visits on {known}")


server = Server("clinic", version="7", lifespan=open_wards, on_list_tools=list_tools, on_call_tool=call_tool)
