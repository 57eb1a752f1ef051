"""A person at the official Python client: reads the questions, gives the prepared answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from mcp import Client, MCPError
from mcp_types import ElicitRequestFormParams, ElicitResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from mcp.client.session import ClientRequestContext
    from mcp_types import CallToolResult, ElicitRequestParams, GetPromptResult, ReadResourceResult

T = TypeVar("T")

DECLINE = ElicitResult(action="decline")
CANCEL = ElicitResult(action="cancel")


def accept(**content: str | float | bool) -> ElicitResult:
    return ElicitResult(action="accept", content=dict(content))


class Person:
    """Answers questions in turn. `asked` holds the questions, `answers` the answers that are left."""

    def __init__(self, *answers: ElicitResult) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def answer(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - the client passes it by name
        params: ElicitRequestParams,
    ) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        self.asked.append((params.message, dict(params.requested_schema)))
        return self.answers.pop(0)

    def call_tool(self, url: str, name: str, arguments: dict[str, Any]) -> CallToolResult:
        return self.use(url, lambda client: client.call_tool(name, arguments))

    def get_prompt(self, url: str, name: str, arguments: dict[str, str]) -> GetPromptResult:
        return self.use(url, lambda client: client.get_prompt(name, arguments))

    def read_resource(self, url: str, uri: str) -> ReadResourceResult:
        return self.use(url, lambda client: client.read_resource(uri))

    def use(self, url: str, conversation: Callable[[Client], Awaitable[T]]) -> T:
        return talk(Client(url, elicitation_callback=self.answer), conversation)


def talk(client: Client, conversation: Callable[[Client], Awaitable[T]]) -> T:
    """Hold one conversation at revision 2026-07-28.

    Raises:
        MCPError: the server refused.

    """

    async def checked(connected: Client) -> T:
        assert connected.protocol_version == "2026-07-28"
        return await conversation(connected)

    return run(client, checked)


def run(connection: AbstractAsyncContextManager[Client], conversation: Callable[[Client], Awaitable[T]]) -> T:
    """Hold one conversation over a connection.

    Raises:
        MCPError: the server refused.

    """

    async def connected() -> T | MCPError:
        async with connection as client:
            try:
                return await conversation(client)
            except MCPError as refused:  # raised inside the connection, it would arrive in an exception group
                return refused

    outcome = anyio.run(connected)
    if isinstance(outcome, MCPError):
        raise outcome
    return outcome


def text(result: CallToolResult | GetPromptResult | ReadResourceResult) -> str:
    """Return the only text of a result."""
    wire = result.model_dump(by_alias=True, exclude_none=True)
    (only,) = wire.get("content") or wire.get("contents") or [message["content"] for message in wire["messages"]]
    return str(only["text"])
