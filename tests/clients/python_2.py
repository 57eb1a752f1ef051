"""The official Python client of 2026 as it speaks to older servers: `python python_2.py`; lines as for python_1.py."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import anyio
from mcp import Client, MCPError
from mcp_types import (
    CreateMessageResult,
    ElicitResult,
    ErrorData,
    ListRootsResult,
    Root,
    TextContent,
)
from pydantic import FileUrl

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.client.session import ClientRequestContext
    from mcp_types import CreateMessageRequestParams, ElicitRequestParams
    from pydantic import BaseModel

AT_ONCE = 6
SECONDS = 300


class Held:
    """One conversation: the person and the model at this client, and what they were asked."""

    def __init__(self, call: dict[str, Any]) -> None:
        self.call = call
        self.answers = list(call["answers"])
        self.asked: list[str] = []
        self.said: dict[str, Any] = {}

    async def elicited(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - the client passes it by name
        params: ElicitRequestParams,
    ) -> ElicitResult | ErrorData:
        self.asked.append(params.message)
        answer = self.answers.pop(0)
        return ErrorData(**answer["error"]) if "error" in answer else ElicitResult(**answer)

    async def sampled(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - as above
        params: CreateMessageRequestParams,
    ) -> CreateMessageResult:
        content = params.messages[0].content
        assert isinstance(content, TextContent)
        self.asked.append(content.text)
        return CreateMessageResult(**self.answers.pop(0))

    async def rooted(self, context: ClientRequestContext) -> ListRootsResult:  # noqa: ARG002 - as above
        self.asked.append("roots")
        return ListRootsResult(roots=[Root(uri=FileUrl("file:///work/printers"))])

    async def hold(self) -> None:
        client = Client(
            self.call["url"],
            mode="legacy",
            elicitation_callback=self.elicited,
            sampling_callback=self.sampled,
            list_roots_callback=self.rooted,
        )
        async with client:
            self.said = {"revision": client.protocol_version}
            try:
                self.said["result"] = await METHODS[self.call["method"]](client, self.call["params"])
            except MCPError as refused:  # raised in here, it would come out as a group of exceptions
                self.said["error"] = {"code": refused.code, "message": refused.message}


async def listed(client: Client, _params: object) -> dict[str, Any]:
    return {
        **dumped(await client.list_tools()),
        **dumped(await client.list_prompts()),
        **dumped(await client.list_resources()),
        **dumped(await client.list_resource_templates()),
    }


async def called(client: Client, params: dict[str, Any]) -> dict[str, Any]:
    return dumped(await client.call_tool(params["name"], params["arguments"]))


async def got(client: Client, params: dict[str, Any]) -> dict[str, Any]:
    return dumped(await client.get_prompt(params["name"], params["arguments"]))


async def read(client: Client, params: dict[str, Any]) -> dict[str, Any]:
    return dumped(await client.read_resource(params["uri"]))


METHODS: dict[str, Callable[[Client, dict[str, Any]], Awaitable[dict[str, Any]]]] = {
    "lists": listed,
    "tools/call": called,
    "prompts/get": got,
    "resources/read": read,
}


def dumped(result: BaseModel) -> dict[str, Any]:
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


async def main() -> None:
    held = [Held(json.loads(line)) for line in sys.stdin]
    limit = anyio.CapacityLimiter(AT_ONCE)

    async def hold(one: Held) -> None:
        async with limit:
            with anyio.move_on_after(SECONDS) as patience:
                await one.hold()
            if patience.cancelled_caught:
                one.said["error"] = {"code": 0, "message": f"nothing came of it in {SECONDS} seconds"}

    async with anyio.create_task_group() as talks:
        for one in held:
            talks.start_soon(hold, one)
    for one in held:
        sys.stdout.write(json.dumps({"asked": one.asked, **one.said}) + "\n")


if __name__ == "__main__":
    anyio.run(main)
