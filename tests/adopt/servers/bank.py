"""A bank, written for the official `MCPServer` by someone who has never heard of this toolkit."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

from mcp.server.mcpserver import Context, Elicit, Image, MCPServer, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import Completion, Icon, ToolAnnotations
from pydantic import BaseModel, Field

entered: list[str] = []


@dataclass
class Books:
    """What the lifespan opens."""

    currency: str = "EUR"
    moved: list[int] = field(default_factory=list)


@asynccontextmanager
async def open_books(_server: MCPServer[Books]) -> AsyncIterator[Books]:
    entered.append("books")
    yield Books()


server = MCPServer(
    "bank",
    title="The bank",
    description="Moves money.",
    version="3.1",
    instructions="Ask before you move money.",
    website_url="https://bank.example",
    icons=[Icon(src="https://bank.example/icon.png", mime_type="image/png")],
    lifespan=open_books,
)
PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=")


class Sure(BaseModel):
    """Whether the person agrees."""

    sure: bool = Field(description="Really?")


class Pin(BaseModel):
    """What only the person knows."""

    pin: int = Field(ge=0, le=9999)


class Account(BaseModel):
    """An account."""

    owner: str
    cents: int


@server.tool(
    title="Balance",
    annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    icons=[Icon(src="https://bank.example/balance.png")],
    meta={"team": "ledger"},
)
def balance(owner: Annotated[str, Field(description="Whose account", min_length=2)], cents: int = 5) -> Account:
    """Read an account."""
    return Account(owner=owner, cents=cents)


@server.tool()
async def transfer(amount: int, ctx: Context) -> str:
    """Move money, after two questions."""
    first = await ctx.elicit(f"Move {amount}?", Sure)
    if first.action != "accept":
        return f"not moved: {first.action}"
    await ctx.report_progress(1, 2, "asked")
    second = await ctx.elicit("Your PIN?", Pin)
    if second.action != "accept":
        return f"not moved: {second.action}"
    books: Books = ctx.request_context.lifespan_context
    return f"moved {amount} {books.currency} for {second.data.pin} ({first.data.sure})"


@server.tool()
async def consent(ctx: Context) -> str:
    """Send the person to a page."""
    return (await ctx.elicit_url("Sign the contract", "https://bank.example/sign", "contract-1")).action


def ask_rate(amount: int) -> Elicit[Pin]:
    """Ask which rate applies."""
    return Elicit(f"Which rate for {amount}?", Pin)


@server.tool()
async def loan(amount: int, rate: Annotated[Pin, Resolve(ask_rate)]) -> str:
    """Lend money, at a rate that a resolver asks for."""
    return f"lent {amount} at {rate.pin}"


@server.tool()
async def report(ctx: Context) -> dict[str, Any]:
    """Say what the context knows."""
    books: Books = ctx.request_context.lifespan_context
    books.moved.append(1)
    notes = [str(item.content) for item in await ctx.read_resource("bank://branches/3")]
    return {"currency": books.currency, "notes": notes, "client": ctx.session.client_capabilities is not None}


@server.tool()
def picture() -> list[Any]:
    """Return content of two kinds."""
    return ["the logo", Image(data=PIXEL, format="png")]


@server.tool()
def refuse(reason: str) -> str:
    """Fail with a text for the model."""
    raise ToolError(f"refused: {reason}")


@server.tool()
def crash() -> str:
    """Fail by accident."""
    raise RuntimeError("a secret of the bank")


@server.resource("bank://rates", title="Rates", mime_type="application/json", meta={"daily": True})
def rates() -> str:
    """List the rates."""
    return '{"EUR": 1}'


@server.resource("bank://branches/{number}")
def branch(number: int) -> str:
    """Describe a branch."""
    return f"branch {number + 1}"


@server.resource("bank://files/{+path}")
def file(path: str) -> bytes:
    """Return a file."""
    return path.encode()


@server.prompt(title="Letter")
def letter(to: str, tone: str = "kind") -> str:
    """Write a letter."""
    return f"Write a {tone} letter to {to}."


@server.completion()
async def complete(_ref: Any, argument: Any, _context: Any) -> Completion | None:
    """Complete the tone of a letter."""
    known = ["kind", "cold"] if argument.name == "tone" else []
    return Completion(values=[tone for tone in known if tone.startswith(argument.value)])
