"""What `open` writes: lines with a label, times, and why a server refuses a requestState (a sealed token)."""

from __future__ import annotations

from datetime import datetime

from mcp_functions.seal.envelope import MAX_CHARS
from mcp_functions.seal.request_state import MAX_ROUNDS

UNITS = ((86_400, "days"), (3600, "h"), (60, "min"))  # seconds of a unit, longest first

WHY: dict[str, str] = {  # each reason to refuse a requestState, explained to an operator
    "prefix": "it does not start with ks1.: another toolkit or codec made it",
    "length": f"it has more than {MAX_CHARS} characters (unless MCP_MAX_STATE_CHARS is higher)",
    "encoding": "a character was changed, added or lost on its way: it is not canonical base64url",
    "truncated": "it was cut",
    "suite": "this version does not know its format",
    "key_kind": "this version does not know how its data key is stored",
    "kek_unknown": "another KMS key than the listed ones wraps its data key",
    "born_future": "its data key has a time in the future: clocks differ, or it is forged",
    "born_past": "its data key is older than every state that is still valid",
    "wrapped_key": (
        "KMS does not open its data key for this function, stage and generation: it was sealed for another, or before"
        " the generation was raised, or its first part was changed"
    ),
    "commitment": "it was changed on its way: its data key is valid, but does not fit the rest",
    "tag": "it was changed on its way: the sealed part is damaged",
    "claims": "its claims are not those of this version",
    "audience": "another function or stage sealed it",
    "principal": "it was sealed for another principal",
    "method": "it was sealed for another method",
    "target": "it was sealed for another tool, prompt or resource",
    "arguments": "it was sealed for other arguments: a client must repeat them unchanged",
    "issued_future": "it was sealed later than now: clocks differ by more than a minute",
    "lifetime": "its lifetime is longer than the function allows now: answer_within was shortened",
    "expired": "the answer came too late",
    "round": f"the conversation is over its budget of {MAX_ROUNDS} rounds",
}


def line(label: str, text: str) -> str:
    """Return a line that begins with a label."""
    return f"{label:<13} {text}"


def when(time: float, now: float) -> str:
    """Return a time in the user's time zone, and its distance from now."""
    seconds = abs(time - now)
    distance = f"{seconds:.0f} s"
    for length, unit in UNITS:
        if seconds >= length:
            distance = f"{seconds / length:.0f} {unit}"
            break
    relative = f"in {distance}" if time > now else f"{distance} ago"
    local = datetime.fromtimestamp(time).astimezone()
    return f"{local:%Y-%m-%d %H:%M:%S %Z}, {relative}"
