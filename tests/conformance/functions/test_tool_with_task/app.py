"""A tool that asks for a name in a round of the call, and then becomes a task: what a signature asks comes before."""

from typing import Annotated

from pydantic import BaseModel

from mcp_functions import Ask, serve, tool


class Name(BaseModel):
    name: str


@tool(task="required")
def test_tool_with_task(*, user_name: Annotated[Name, Ask("What is your name?")]) -> str:
    """Greet a person, in a task."""
    return f"Hello, {user_name.name}!"


handler = serve(test_tool_with_task)
