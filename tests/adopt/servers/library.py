"""A library, written for FastMCP 4: middleware, dependencies, tags, mounted servers, and questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from fastmcp import Context, FastMCP
from fastmcp.dependencies import Depends
from fastmcp.exceptions import ToolError
from fastmcp.server.lifespan import lifespan
from fastmcp.server.middleware import Middleware, MiddlewareContext
from fastmcp.tools import ToolResult


@lifespan
async def open_shelves(_server: FastMCP) -> Any:
    yield {"shelves": 7}


class Counting(Middleware):
    """Marks every result of a tool."""

    async def on_call_tool(self, context: MiddlewareContext, call_next: Any) -> Any:
        result = await call_next(context)
        result.meta = {**(result.meta or {}), "seen-by": "middleware"}
        return result


server = FastMCP("library", instructions="Lend books.", version="2", lifespan=open_shelves, middleware=[Counting()])
archive = FastMCP("archive")


@dataclass
class Loan:
    """How long a book is lent."""

    weeks: int


def librarian() -> str:
    return "Ada"


@server.tool(tags={"read", "shelf"}, annotations={"readOnlyHint": True}, meta={"wing": "east"})
def find(title: str, limit: int = 3) -> list[str]:
    """Find books."""
    return [f"{title} {number}" for number in range(limit)]


@server.tool
async def lend(title: str, ctx: Context, who: str = Depends(librarian)) -> str:
    """Lend a book, after two questions."""
    kind = await ctx.elicit(f"Which copy of {title}?", response_type=["hardback", "paperback"])
    if kind.action != "accept":
        return f"kept: {kind.action}"
    loan = await ctx.elicit("How long?", response_type=Loan)
    if loan.action != "accept":
        return f"kept: {loan.action}"
    return f"{who} lent the {kind.data} of {title} for {loan.data.weeks} weeks"


@server.tool
async def describe(ctx: Context) -> dict[str, Any]:
    """Say what the context knows."""
    await ctx.info("described")
    await ctx.set_state("n", 1)
    return {"shelves": ctx.lifespan_context["shelves"], "n": await ctx.get_state("n")}


@server.tool
def rate(stars: Literal[1, 2, 3]) -> ToolResult:
    """Rate a book."""
    return ToolResult(content=f"{stars} stars", structured_content={"stars": stars})


@server.tool
def refuse() -> str:
    """Fail with a text for the model."""
    raise ToolError("the book is lent")


@server.tool
def crash() -> str:
    """Fail by accident."""
    raise RuntimeError("torn page")


@server.resource("library://rules", tags={"rules"})
def rules() -> str:
    """Return the rules."""
    return "Silence."


@server.resource("library://books/{path*}")
def book(path: str) -> str:
    """Return a book under a path of any depth."""
    return f"book {path}"


@server.resource("library://search{?query,limit}")
def search(query: str = "all", limit: int = 2) -> str:
    """Search with a query."""
    return f"{query} {limit}"


@server.prompt(tags={"talk"})
def recommend(topic: str) -> str:
    """Recommend a book."""
    return f"Recommend a book on {topic}."


@archive.tool
def old(year: int) -> str:
    """Find an old book."""
    return f"a book of {year}"


server.mount(archive, namespace="archive")
