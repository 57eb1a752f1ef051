"""mcp 2.3.0's lowlevel Server without Mangum: the least that the SDK takes for an event."""

from typing import Any

from held_open import bare
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool

OPEN = TransportSecuritySettings(enable_dns_rebinding_protection=False)
TWO = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
MANY = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["text", "count"],
}


def served(server: Any) -> Any:
    server.streamable_http_app(json_response=True, stateless_http=True, transport_security=OPEN)
    manager = server.session_manager
    return bare(manager.handle_request, manager.run())


def add() -> Any:
    async def listed(_ctx, _params):
        return ListToolsResult(tools=[Tool(name="add", description="Add two whole numbers.", input_schema=TWO)])

    async def called(_ctx, params):
        total = params.arguments["a"] + params.arguments["b"]
        text = TextContent(type="text", text=str(total))
        return CallToolResult(content=[text], structured_content={"result": total})

    return served(Server("bench", on_list_tools=listed, on_call_tool=called, get_tool_input_schema=lambda _name: TWO))


def listing(tools: int) -> Any:
    offered = [
        Tool(name=f"tool_{number:03}", description="Do one of many things to a text, so many times.", input_schema=MANY)
        for number in range(tools)
    ]

    async def listed(_ctx, _params):
        return ListToolsResult(tools=offered)

    return served(Server("bench", on_list_tools=listed))
