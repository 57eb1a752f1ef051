"""An order: reserve, ask twice, charge once. Two versions are deployed; the second rewords a question, adds a step."""

from pydantic import BaseModel

from mcp_functions import Caller, Elicit, Step, serve, tool
from tests.soak.placing import placed

place = placed("order")
WORDS = ("which size?", "which size would you like?")


class Size(BaseModel):
    size: int


class Consent(BaseModel):
    agreed: bool


@tool
def order(nonce: str, *, elicit: Elicit, step: Step, caller: Caller) -> str:
    """Order something."""
    shelf = step("reserve", place.reserve, nonce)
    size = elicit("size", f"{nonce}: {WORDS[place.version]}", Size).size
    if place.version:
        step("announce", place.announce, nonce)
    if not elicit("consent", f"{nonce}: size {size} from {shelf}?", Consent).agreed:
        return f"{nonce}: nothing was ordered"
    receipt = step.keyed("charge", place.charge, nonce, size)
    return f"{nonce}: for {caller.subject}, size {size} from {shelf}, {receipt}"


handler = place.around(serve(order, now=place.clock))
