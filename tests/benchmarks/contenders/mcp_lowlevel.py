"""mcp 2.3.0's lowlevel Server without Mangum: the least that the SDK takes for an event."""

import json
from typing import Any

from held_open import bare
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    ListToolsResult,
    TextContent,
    Tool,
)

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


CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def ask() -> Any:
    return _asking("book_flight", ("seat",), "seat", lambda city, answers: f"Booked: {city}, {answers[0]} seat.")


def chain(questions: int) -> Any:
    keys = tuple(f"leg{leg}" for leg in range(questions))
    return _asking("plan", keys, "place", lambda city, answers: " > ".join([city, *answers]))


def _asking(name, keys, field, done):
    """Ask one question after the other, by hand; the SDK's boundary seals what was answered."""
    schema = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}

    async def listed(_ctx, _params):
        return ListToolsResult(tools=[Tool(name=name, description="Ask.", input_schema=CITY)])

    async def called(_ctx, params):
        answers, city = json.loads(params.request_state or "[]"), params.arguments["city"]
        if params.input_responses:
            answers.append(params.input_responses[keys[len(answers)]].content[field])
        if len(answers) == len(keys):
            return CallToolResult(content=[TextContent(type="text", text=done(city, answers))])
        question = ElicitRequestFormParams(message=f"{field}, on the way to {city}?", requested_schema=schema)
        asked: Any = {keys[len(answers)]: ElicitRequest(params=question)}
        return InputRequiredResult(input_requests=asked, request_state=json.dumps(answers))

    server = Server("bench", on_list_tools=listed, on_call_tool=called, get_tool_input_schema=lambda _name: CITY)
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="bench"))
    return served(server)
