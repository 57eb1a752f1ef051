"""The last official Python client of 2025, unmodified: `.venv-clients/bin/python python_1.py`.

Reads a conversation from each line of stdin and holds each in its own session, some at once.
Prints the questions and the result of each, in the same order.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
from mcp import ClientSession, McpError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CreateMessageResult, ElicitResult, ErrorData, ListRootsResult, Root

AT_ONCE = 6
SECONDS = 300


class Held:
    """One conversation: the person and the model at this client, and what they were asked."""

    def __init__(self, call: dict[str, Any]) -> None:
        self.call = call
        self.answers = list(call["answers"])
        self.asked: list[str] = []
        self.said: dict[str, Any] = {}

    async def elicited(self, _context: object, params: Any) -> ElicitResult | ErrorData:
        self.asked.append(params.message)
        answer = self.answers.pop(0)
        return ErrorData(**answer["error"]) if "error" in answer else ElicitResult(**answer)

    async def sampled(self, _context: object, params: Any) -> CreateMessageResult:
        self.asked.append(params.messages[0].content.text)
        return CreateMessageResult(**self.answers.pop(0))

    async def rooted(self, _context: object) -> ListRootsResult:
        self.asked.append("roots")
        return ListRootsResult(roots=[Root(uri="file:///work/printers")])

    async def hold(self) -> None:
        async with (
            streamable_http_client(self.call["url"]) as (reads, writes, _session_id),
            ClientSession(
                reads,
                writes,
                elicitation_callback=self.elicited,
                sampling_callback=self.sampled,
                list_roots_callback=self.rooted,
            ) as session,
        ):
            begun = await session.initialize()
            self.said = {"revision": begun.protocolVersion}
            try:
                self.said["result"] = await METHODS[self.call["method"]](session, self.call["params"])
            except McpError as refused:  # raised in here, it would come out as a group of exceptions
                self.said["error"] = {"code": refused.error.code, "message": refused.error.message}


async def listed(session: ClientSession, _params: object) -> dict[str, Any]:
    return {
        **dumped(await session.list_tools()),
        **dumped(await session.list_prompts()),
        **dumped(await session.list_resources()),
        **dumped(await session.list_resource_templates()),
    }


async def called(session: ClientSession, params: dict[str, Any]) -> dict[str, Any]:
    return dumped(await session.call_tool(params["name"], params["arguments"]))


async def got(session: ClientSession, params: dict[str, Any]) -> dict[str, Any]:
    return dumped(await session.get_prompt(params["name"], params["arguments"]))


async def read(session: ClientSession, params: dict[str, Any]) -> dict[str, Any]:
    return dumped(await session.read_resource(params["uri"]))


METHODS = {"lists": listed, "tools/call": called, "prompts/get": got, "resources/read": read}


def dumped(result: Any) -> dict[str, Any]:
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
        print(json.dumps({"asked": one.asked, **one.said}))


if __name__ == "__main__":
    anyio.run(main)
