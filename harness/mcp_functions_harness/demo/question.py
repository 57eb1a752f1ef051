"""`demo`: the official Python client calls `update_work_item`, which asks twice.

    round 1    the call                              -> a question, and an encrypted ("sealed") state
    round 2    the call, its answer and the state    -> another question, and a new state
    round 3    the call, its answer and the state    -> the result

At the end the server refuses a state with one changed character.
"""

import asyncio
from pathlib import Path
from typing import Any, TextIO

from mcp import MCPError

from mcp_functions_harness.demo import one_round
from mcp_functions_harness.demo.rounds import ANSWERS, COUNT, TOOL, Rounds, Transcript, expect, stage
from mcp_functions_harness.harness import Harness
from mcp_functions_harness.problems import DemoError

INVALID_STATE = -32602  # JSON-RPC's code for invalid params


def run(functions: Path, out: TextIO, *, runtime: bool = False) -> None:
    """Hold the conversation and show it.

    Args:
        functions: the directory of functions, with `update_work_item`.
        out: where to write.
        runtime: run each round in a process of the real Lambda runtime.

    Raises:
        Problem: the user has to correct something first.
        DemoError: the conversation differed from the expected one.
    """
    with stage() as folder, Harness(functions, state_dir=folder, runtime=runtime, reuse=False) as harness:
        transcript = Transcript(out)
        rounds = Rounds(folder / "conversation.json", transcript)
        rounds.begin(functions, harness)
        transcript.write(f"The official Python client calls {TOOL} at {harness.url}\n")
        for _ in range(COUNT - 1):
            result = rounds.run_round(one_round.advance, harness)
            rounds.show_questions(result)
            transcript.state(result["requestState"])
        rounds.show_end(rounds.run_round(one_round.advance, harness))
        _send_changed_state(rounds.read_file(), transcript)
        what = "invocations"
        if runtime:
            what = "processes"
            expect(len({invocation.pid for invocation in rounds.invocations}) == COUNT, "two rounds were one process")
        transcript.write(f"{COUNT} rounds, {COUNT} {what}, and nothing kept on the server between them.")


def _send_changed_state(conversation: dict[str, Any], transcript: Transcript) -> None:
    """Send the last round again, with one character of the state changed, and show the refusal."""
    state = conversation["requestState"]
    position = len(state) // 2
    other = "B" if state[position] == "A" else "A"
    changed = {**conversation, "requestState": state[:position] + other + state[position + 1 :]}
    try:
        asyncio.run(one_round.send(changed, {key: ANSWERS[key] for key in conversation["inputRequests"]}))
    except MCPError as error:
        expect(error.code == INVALID_STATE, f"the server answered a changed state with {error.code}")
        transcript.heading("An attacker changes the state")
        transcript.line("client", f"sends round {COUNT} again, with character {position} of the state changed")
        transcript.line("refused", f"{error.code} {error.message}\n")
    else:
        raise DemoError("the server accepted a changed state")
