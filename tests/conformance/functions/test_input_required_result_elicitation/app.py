"""A low-level tool that needs a name.

The suite sends the second round without a state from a first, so nothing proves that the server asked the question.
The answer is then `unproven`: this tool reads the name from it, as from an argument.
The inline `elicit` would ask again.
"""

from pydantic import BaseModel

from mcp_functions import Question, serve, tool
from mcp_functions.low_level import InputRequiredResult, InputResponses


class Name(BaseModel):
    name: str


@tool
def test_input_required_result_elicitation(*, input_responses: InputResponses) -> str | InputRequiredResult:
    """Greet a person by name."""
    proven = input_responses.accepted("user_name", Name)
    if proven:
        return f"Hello, {proven.name}!"
    match input_responses.unproven.get("user_name"):
        case {"action": "accept", "content": {"name": str(name)}}:
            return f"Hello, {name}!"
    return InputRequiredResult(input_requests={"user_name": Question("What is your name?", Name)})


handler = serve(test_input_required_result_elicitation)
