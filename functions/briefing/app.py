"""A prompt that asks for its audience before it is written."""

from typing import Literal

from pydantic import BaseModel, Field

from mcp_functions import Elicit, prompt, serve


class Audience(BaseModel):
    audience: Literal["engineers", "executives", "customers"] = Field(description="Who will read it")
    minutes: int = Field(default=5, ge=1, le=30, description="How long they have to read it")


@prompt
def briefing(topic: str, *, elicit: Elicit) -> str:
    """Draft a briefing tuned to its audience."""
    to = elicit("audience", f"Who is the briefing on {topic} for?", Audience)
    return f"Write a briefing on {topic} for {to.audience}, to be read in {to.minutes} minutes."


handler = serve(briefing)
