"""A tool in three rounds, each with another state."""

from pydantic import BaseModel

from mcp_functions import Elicit, serve, tool


class Name(BaseModel):
    name: str


class Color(BaseModel):
    color: str


@tool
def test_input_required_result_multi_round(*, elicit: Elicit) -> str:
    """Ask for a name, then for a color."""
    name = elicit("step1", "Step 1: What is your name?", Name).name
    color = elicit("step2", "Step 2: What is your favorite color?", Color).color
    return f"{name} likes {color}."


handler = serve(test_input_required_result_multi_round)
