"""A tool of the low level that keeps a typed state between its rounds."""

from pydantic import BaseModel

from mcp_functions import Question, serve, tool
from mcp_functions.low_level import InputRequiredResult, InputResponses, RequestState


class Kept(BaseModel):
    asked: bool = False


class Confirmation(BaseModel):
    ok: bool


@tool
def test_input_required_result_request_state(
    *, input_responses: InputResponses, request_state: RequestState[Kept]
) -> str | InputRequiredResult:
    """Confirm, and find the state again."""
    confirmed = input_responses.accepted("confirm", Confirmation)
    if confirmed and request_state.value.asked:
        return "state-ok"
    return InputRequiredResult({"confirm": Question("Please confirm", Confirmation)}, Kept(asked=True))


handler = serve(test_input_required_result_request_state)
