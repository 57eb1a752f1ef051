"""Sends one request of a tool call with the official Python client.

    python -m mcp_functions_harness.demo.one_round FILE ANSWERS

FILE is JSON with url, name and arguments of the call. ANSWERS is JSON: the content of each form, by the key of its
question. The program prints the result, and keeps its questions and its state in FILE for the next request.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, TypeAlias, TypedDict, cast

from mcp import Client, MCPError
from mcp.types import ElicitResult

if TYPE_CHECKING:
    from mcp_functions.protocol.wire_types import InputRequest, JSONObject, ResultObject

SECONDS = 60  # the longest time that the request may take
Contents: TypeAlias = "dict[str, JSONObject]"  # of forms, by the key of their question


class Call(TypedDict):
    """The content of FILE: a call, and after a round its questions and its state."""

    url: str
    name: str
    arguments: JSONObject
    inputRequests: NotRequired[dict[str, InputRequest]]
    requestState: NotRequired[str]


async def send(conversation: Call, answers: Contents) -> ResultObject:
    """Send one request of a call; an error of the server is an MCPError."""
    responses = {key: ElicitResult(action="accept", content=content) for key, content in answers.items()}
    async with Client(conversation["url"], mode="2026-07-28", elicitation_callback=_decline_all) as client:
        try:
            result = await client.session.call_tool(
                conversation["name"],
                conversation["arguments"],
                input_responses=dict(responses) or None,
                request_state=conversation.get("requestState"),
                allow_input_required=True,
            )
        except MCPError as error:
            refused = error  # raised below: the client would put it into an exception group here
        else:
            dumped: Any = result.model_dump(mode="json", by_alias=True, exclude_none=True)
            return cast("ResultObject", dumped)
    raise refused


def advance(file: Path, answers: Contents) -> ResultObject:
    """Send the next request of the call in a file, and keep its questions and its state there."""
    conversation = json.loads(file.read_text(encoding="utf-8"))
    result = asyncio.run(asyncio.wait_for(send(conversation, answers), SECONDS))
    continuation = {name: part for name, part in result.items() if name in {"inputRequests", "requestState"}}
    if continuation:
        file.write_text(json.dumps({**conversation, **continuation}), encoding="utf-8")
    return result


async def _decline_all(context: object, params: object) -> ElicitResult:  # noqa: ARG001 - the client's names
    """Answer no form. With this callback the client says that it supports forms; the demos answer them themselves."""
    return ElicitResult(action="cancel")


if __name__ == "__main__":
    try:
        sys.stdout.write(json.dumps(advance(Path(sys.argv[1]), json.loads(sys.argv[2]))))
    except MCPError as refusal:
        sys.exit(f"{refusal.code} {refusal.message}")
