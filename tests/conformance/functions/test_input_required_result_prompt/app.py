"""A prompt that asks before it is written."""

from pydantic import BaseModel

from mcp_functions import Elicit, prompt, serve


class Context(BaseModel):
    context: str


@prompt
def test_input_required_result_prompt(*, elicit: Elicit) -> str:
    """Write a prompt for a context."""
    given = elicit("user_context", "What context should the prompt use?", Context)
    return f"Use this context: {given.context}"


handler = serve(test_input_required_result_prompt)
