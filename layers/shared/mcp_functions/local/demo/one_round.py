"""One round of a conversation through the official Python client: `python -m mcp_functions.local.demo.one_round`.

Its arguments are FILE, which keeps the conversation between processes, and ANSWERS, contents by key, as JSON. It prints
the result as JSON, and writes the questions and the state for the next round to FILE.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from mcp import Client, MCPError
from mcp.types import ElicitResult

SECONDS = 60  # longest time for one round


async def send(conversation: dict[str, Any], answers: dict[str, Any]) -> dict[str, Any]:
    """Send one round.

    Args:
        conversation: has url, name and arguments; after the first round also requestState.
        answers: the contents of the forms, by the key of the question.

    Returns:
        The result as JSON.

    Raises:
        MCPError: the server's error.
    """
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
            refused = error  # raised here, it would arrive inside an exception group
        else:
            dumped: dict[str, Any] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
            return dumped
    raise refused


def advance(file: Path, answers: dict[str, Any]) -> dict[str, Any]:
    """Send the next round of the conversation in FILE, and keep its questions and its state there."""
    conversation = json.loads(file.read_text(encoding="utf-8"))
    result = asyncio.run(asyncio.wait_for(send(conversation, answers), SECONDS))
    continuation = {name: result[name] for name in ("inputRequests", "requestState") if name in result}
    if continuation:
        file.write_text(json.dumps({**conversation, **continuation}), encoding="utf-8")
    return result


async def _decline_all(context: object, params: object) -> ElicitResult:  # noqa: ARG001 - the names of the client
    """Declare that the client can answer forms. It is never called, because the demos answer themselves."""
    return ElicitResult(action="cancel")


if __name__ == "__main__":
    try:
        sys.stdout.write(json.dumps(advance(Path(sys.argv[1]), json.loads(sys.argv[2]))))
    except MCPError as refusal:
        sys.exit(f"{refusal.code} {refusal.message}")
