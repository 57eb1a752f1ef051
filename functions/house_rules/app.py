"""A resource with a fixed URI that asks. The signature declares the question; a user who declines it reads English."""

from typing import Annotated, Literal

from mcp_functions import Ask, resource, serve

RULES = {
    "English": "Shoes off. Quiet after ten. The cat is not to be fed.",
    "Deutsch": "Schuhe aus. Ab zehn ist Ruhe. Die Katze wird nicht gefüttert.",
    "Português": "Sem sapatos. Silêncio depois das dez. Não se dá comida ao gato.",
}

Language = Literal["English", "Deutsch", "Português"]


@resource("house://rules", mime_type="text/plain")
def house_rules(*, reader: Annotated[Language | None, Ask("In which language would you like to read them?")]) -> str:
    """Read the rules of the house."""
    return RULES[reader or "English"]


handler = serve(house_rules)
