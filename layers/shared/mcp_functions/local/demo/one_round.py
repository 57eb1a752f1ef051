"""One round of a conversation through the official Python client: `python -m mcp_functions.local.demo.one_round`.

Its words are FILE, which carries the conversation from process to process, and ANSWERS, contents by key, as JSON. The
result is printed as JSON; what is asked, and the state to send back with the answers, is left in FILE.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from mcp import Client, MCPError
from mcp.types import ElicitResult


async def send(kept: dict[str, Any], answers: dict[str, Any]) -> dict[str, Any] | MCPError:
    """Send one round.

    Args:
        kept: url, name, arguments; and requestState, after the first round.
        answers: contents of the forms, by key.

    Returns:
        The result as it travels, or the server's refusal.

    """
    responses = {key: ElicitResult(action="accept", content=content) for key, content in answers.items()}
    async with Client(kept["url"], mode="2026-07-28", elicitation_callback=_declared) as client:
        try:
            result = await client.session.call_tool(
                kept["name"],
                kept["arguments"],
                input_responses=dict(responses) or None,
                request_state=kept.get("requestState"),
                allow_input_required=True,
            )
        except MCPError as error:
            return error  # raised here, it would reach nobody but in a group
    dumped: dict[str, Any] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    return dumped


async def _declared(context: object, params: object) -> ElicitResult:  # noqa: ARG001 - the client's signature
    return ElicitResult(action="cancel")  # never called: having it declares the capability


def main(file: Path, answers: str) -> None:
    """Send the round that FILE is at."""
    kept = json.loads(file.read_text(encoding="utf-8"))
    result = asyncio.run(send(kept, json.loads(answers)))
    if isinstance(result, MCPError):
        sys.exit(f"{result.code} {result.message}")
    asked = {name: result[name] for name in ("inputRequests", "requestState") if name in result}
    if asked:
        file.write_text(json.dumps({**kept, **asked}), encoding="utf-8")
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
