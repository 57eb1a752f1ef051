"""A tool of the low level that needs three things from the client in one round."""

from typing import Any

from pydantic import BaseModel

from mcp_functions import Question, RootsQuestion, SampleQuestion, serve, tool
from mcp_functions.low_level import InputRequest, InputRequiredResult, InputResponses


class Name(BaseModel):
    name: str


NEEDED: dict[str, InputRequest[Any]] = {
    "user_name": Question("What is your name?", Name),
    "greeting": SampleQuestion("Generate a greeting", max_tokens=50),
    "client_roots": RootsQuestion(),
}


@tool
def test_input_required_result_multiple_inputs(*, input_responses: InputResponses) -> str | InputRequiredResult:
    """Greet a person with the model's text, and name the client's folders."""
    missing = {key: request for key, request in NEEDED.items() if key not in input_responses}
    if missing:
        return InputRequiredResult(missing)
    name = input_responses.accepted("user_name", Name)
    greeting, roots = input_responses["greeting"]["content"], input_responses["client_roots"]["roots"]
    return f"{greeting['text']} {name.name if name else 'Stranger'}, in {len(roots)} folders."


handler = serve(test_input_required_result_multiple_inputs)
