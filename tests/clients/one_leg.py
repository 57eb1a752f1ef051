"""Sends one round of a conversation: `python one_leg.py URL FILE [ANSWERS]`. The file keeps the state in between.

FILE carries the conversation from one process to the next: the call as it was first made, and the state to send back.
ANSWERS is `inputResponses` as JSON; the response is printed as JSON.
Every leg calls the same tool with the same arguments.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp_types import CallToolResult, ElicitResult, InputRequiredResult, InputResponses


async def run_round(
    url: str, kept: dict[str, Any], responses: InputResponses | None
) -> CallToolResult | InputRequiredResult:
    # the callback only declares that this client can ask a person; the driving is ours
    async with Client(url, mode="2026-07-28", elicitation_callback=refuse_question) as client:
        return await client.session.call_tool(
            kept["name"],
            kept["arguments"],
            input_responses=responses,
            request_state=kept.get("requestState"),
            allow_input_required=True,
        )


async def refuse_question(context: object, params: object) -> ElicitResult:
    raise NotImplementedError(context, params)


def main(url: str, file: Path, answers: str = "{}") -> None:
    kept = json.loads(file.read_text(encoding="utf-8"))
    responses: InputResponses = {key: ElicitResult(**answer) for key, answer in json.loads(answers).items()}
    said = anyio.run(run_round, url, kept, responses or None)
    if isinstance(said, InputRequiredResult):
        file.write_text(json.dumps({**kept, "requestState": said.request_state}), encoding="utf-8")
    else:
        file.unlink()
    sys.stdout.write(said.model_dump_json(by_alias=True, exclude_none=True))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
