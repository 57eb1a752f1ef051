"""A prompt that asks for its audience before it is written."""

from dataclasses import dataclass
from typing import Annotated, Literal

from mcp_functions import Elicit, prompt, serve
from mcp_functions.annotated import Between


@dataclass
class Audience:
    audience: Annotated[Literal["engineers", "executives", "customers"], "Who will read it"]
    minutes: Annotated[int, Between(1, 30), "How long they have to read it"] = 5


@prompt
def briefing(topic: str, *, elicit: Elicit) -> str:
    """Draft a briefing tuned to its audience."""
    to = elicit("audience", f"Who is the briefing on {topic} for?", Audience)
    return f"Write a briefing on {topic} for {to.audience}, to be read in {to.minutes} minutes."


handler = serve(briefing)
