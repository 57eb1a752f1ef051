"""A task that asks two things at once, answered one by one."""

from pydantic import BaseModel

from mcp_functions import Elicit, Question, serve, tool


class Name(BaseModel):
    name: str


class Confirmation(BaseModel):
    confirm: bool


@tool(task="allowed")
def multi_input(*, elicit: Elicit) -> str:
    """Ask for a name and a confirmation."""
    named, confirmed = elicit.together(
        Question("What is your name?", Name, key="name"), Question("Shall we go on?", Confirmation, key="confirm")
    )
    return f"{named.name}: {confirmed.confirm}"


handler = serve(multi_input)
