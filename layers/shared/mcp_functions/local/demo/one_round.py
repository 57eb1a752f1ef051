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


async def send(conversation: dict[str, Any], answers: dict[str, Any]) -> dict[str, Any] | MCPError:
    """Send one round.

    Args:
        conversation: url, name, arguments; after the first round also requestState.
        answers: contents of the forms, by key.

    Returns:
        The result as JSON, or the server's error.
    """
    responses = {key: ElicitResult(action="accept", content=content) for key, content in answers.items()}
    async with Client(conversation["url"], mode="2026-07-28", elicitation_callback=decline_all) as client:
        try:
            result = await client.session.call_tool(
                conversation["name"],
                conversation["arguments"],
                input_responses=dict(responses) or None,
                request_state=conversation.get("requestState"),
                allow_input_required=True,
            )
        except MCPError as error:
            return error  # raised here, it would arrive inside an exception group
    dumped: dict[str, Any] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    return dumped


async def decline_all(context: object, params: object) -> ElicitResult:  # noqa: ARG001 - the names of the client
    """Declare that the client can answer forms. It is never called, because the demos answer themselves."""
    return ElicitResult(action="cancel")


def main(file: Path, answers: str) -> None:
    """Send the next round of the conversation in FILE."""
    conversation = json.loads(file.read_text(encoding="utf-8"))
    result = asyncio.run(send(conversation, json.loads(answers)))
    if isinstance(result, MCPError):
        sys.exit(f"{result.code} {result.message}")
    kept = {name: result[name] for name in ("inputRequests", "requestState") if name in result}
    if kept:
        file.write_text(json.dumps({**conversation, **kept}), encoding="utf-8")
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
