"""fastmcp 4.1.6 behind Mangum, held open; tools are async, and ask by the guard pattern."""

from typing import Any

from fastmcp import Context, FastMCP
from held_open import mangum
from mcp.types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

SEAT = {
    "type": "object",
    "properties": {"seat": {"type": "string", "enum": ["window", "aisle"]}},
    "required": ["seat"],
}


def served(server: Any) -> Any:
    app = server.http_app(path="/mcp", json_response=True, stateless_http=True, host_origin_protection=False)
    return mangum(app, app.router.lifespan_context(app))


def add() -> Any:
    server = FastMCP("bench")

    @server.tool
    async def add(a: int, b: int) -> int:
        """Add two whole numbers."""
        return a + b

    return served(server)


def listing(tools: int) -> Any:
    server = FastMCP("bench")

    def one(number: int) -> None:
        async def tool(text: str, count: int) -> str:
            """Do one of many things to a text, so many times."""
            return text * count

        server.tool(tool, name=f"tool_{number:03}")

    for number in range(tools):
        one(number)
    return served(server)


def ask() -> Any:
    server = FastMCP("bench")

    @server.tool
    async def book_flight(city: str, ctx: Context) -> str | InputRequiredResult:
        """Book a flight to a city."""
        answers = ctx.input_responses
        if not answers:
            message = f"Where would you like to sit on the way to {city}?"
            params = ElicitRequestFormParams(message=message, requested_schema=SEAT)
            return InputRequiredResult(input_requests={"seat": ElicitRequest(params=params)}, request_state="asked")
        return f"Booked: {city}, {answers['seat'].content['seat']} seat."

    return served(server)


def echo() -> Any:
    server = FastMCP("bench")

    @server.tool
    async def length(text: str) -> int:
        """Count the characters of a text."""
        return len(text)

    return served(server)
