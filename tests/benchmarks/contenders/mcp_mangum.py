"""mcp 2.3.0 (MCPServer) behind Mangum, by the SDK's idioms; tools are async, which spares them a hop to a thread.

Without BENCH_WRAPPED the seal's key is made at start, by the process for itself, as the SDK does by default. With it,
the key is one that KMS wrapped, and boto3 asks KMS for it when the module loads, as the SDK's pages on codecs have it.
"""

import os
from typing import Annotated, Any, Literal

from held_open import mangum
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from mcp.server.request_state import RequestStateSecurity
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult
from pydantic import BaseModel

OPEN = TransportSecuritySettings(enable_dns_rebinding_protection=False)


def made():
    wrapped = os.environ.get("BENCH_WRAPPED")
    security = RequestStateSecurity(keys=[_unwrapped(wrapped)]) if wrapped else None
    return MCPServer("bench", log_level="WARNING", request_state_security=security)


def _unwrapped(wrapped):
    import boto3

    kms = boto3.client("kms")
    context = {"purpose": "mcp-request-state"}
    blob = bytes.fromhex(wrapped)
    return kms.decrypt(CiphertextBlob=blob, KeyId=os.environ["BENCH_KEY"], EncryptionContext=context)["Plaintext"]


def served(server):
    app = server.streamable_http_app(json_response=True, stateless_http=True, transport_security=OPEN)
    return mangum(app, server.session_manager.run())


def add():
    server = made()

    @server.tool()
    async def add(a: int, b: int) -> int:
        """Add two whole numbers."""
        return a + b

    return served(server)


def listing(tools):
    server = made()

    async def tool(text: str, count: int) -> str:
        """Do one of many things to a text, so many times."""
        return text * count

    for number in range(tools):
        server.add_tool(tool, name=f"tool_{number:03}")
    return served(server)


class Seat(BaseModel):
    seat: Literal["window", "aisle"]


async def seat(city: str) -> Elicit[Seat]:
    return Elicit(f"Where would you like to sit on the way to {city}?", Seat)


def ask():
    server = made()

    @server.tool()
    async def book_flight(city: str, chosen: Annotated[Seat, Resolve(seat)]) -> str:
        """Book a flight to a city."""
        return f"Booked: {city}, {chosen.seat} seat."

    return served(server)


class Leg(BaseModel):
    place: str


def chain(questions):
    server = made()
    before = None

    def resolver(before):
        if before is None:

            async def first(city: str) -> Elicit[Leg]:
                return Elicit(f"Where to from {city}?", Leg)

            return first

        async def later(last: Annotated[Leg, Resolve(before)]) -> Elicit[Leg]:
            return Elicit(f"Where to from {last.place}?", Leg)

        return later

    every = []
    for _ in range(questions):
        before = resolver(before)
        every.append(before)

    names = [f"leg{leg}" for leg in range(questions)]
    parameters = ", ".join(f"{name}: Annotated[Leg, Resolve(every[{leg}])]" for leg, name in enumerate(names))
    places = ", ".join(["city", *(f"{name}.place" for name in names)])
    source = f"async def plan(city: str, {parameters}) -> str:\n    return ' > '.join([{places}])"
    scope = {"Annotated": Annotated, "Leg": Leg, "Resolve": Resolve, "every": every}
    exec(source, scope)  # noqa: S102 - the SDK reads questions from a signature, and this one is as long as we say
    server.add_tool(scope["plan"], description="Plan a trip of many legs, each of which depends on the one before.")
    return served(server)


def state():
    return _remembering(lambda kilobytes: [f"{row:08x}" * 32 for row in range(kilobytes * 4)])


def rows():
    def listed(kilobytes):
        every = range(kilobytes * 16)
        return [{"id": row, "name": f"{row:08x}", "price": row / 8, "free": True} for row in every]

    return _remembering(listed)


def _remembering(listed):
    import json

    server = made()

    @server.tool()
    async def remember(kilobytes: int, ctx: Context) -> str | InputRequiredResult:
        """Carry so much state through a question."""
        if ctx.request_state is None:
            params = ElicitRequestFormParams(message="Where would you like to sit?", requested_schema=SEAT)
            return InputRequiredResult(
                input_requests={"seat": ElicitRequest(params=params)},
                request_state=json.dumps({"rows": listed(kilobytes)}),
            )
        answers: Any = ctx.input_responses
        draft = json.loads(ctx.request_state)
        return f"{len(draft['rows'])} rows, {answers['seat'].content['seat']}"

    return served(server)


SEAT = {"type": "object", "properties": {"seat": {"type": "string"}}, "required": ["seat"]}


def echo():
    server = made()

    @server.tool()
    async def length(text: str) -> int:
        """Count the characters of a text."""
        return len(text)

    return served(server)
