"""A tool that asks, and promises structured content: what pending results must get past in every client."""

from mcp_functions import Elicit, serve, tool


@tool
def rate(*, elicit: Elicit) -> dict[str, int]:
    """Ask for a rating."""
    return {"stars": elicit("stars", "How many stars?", int)}


@tool(ask_in_words=["stars"])
def relayed(*, elicit: Elicit) -> dict[str, int]:
    """Ask for a rating, if need be through the model."""
    return {"stars": elicit("stars", "How many stars?", int)}


handler = serve(rate, relayed)
