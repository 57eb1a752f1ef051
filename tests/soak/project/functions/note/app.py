"""A resource that asks once, under the same key as the order's first question; two wordings are deployed."""

from pydantic import BaseModel

from mcp_functions import Caller, Elicit, resource, serve
from tests.soak.placing import placed

place = placed("note")
WORDS = ("which size is it about?", "about which size, please?")


class Size(BaseModel):
    size: int


@resource("note://{nonce}", mime_type="text/plain")
def note(nonce: str, *, elicit: Elicit, caller: Caller) -> str:
    """Read a note."""
    size = elicit("size", f"{nonce}: {WORDS[place.version]}", Size).size
    return f"{nonce}: a note for {caller.subject} about size {size}"


handler = place.around(serve(note, now=place.clock))
