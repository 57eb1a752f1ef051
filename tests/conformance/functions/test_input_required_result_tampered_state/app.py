"""A tool whose state a client may carry but not change."""

from pydantic import BaseModel

from mcp_functions import Elicit, serve, tool


class Confirmation(BaseModel):
    ok: bool


@tool
def test_input_required_result_tampered_state(*, elicit: Elicit) -> str:
    """Ask for a confirmation."""
    return f"Confirmed: {elicit('confirm', 'Please confirm', Confirmation).ok}."


handler = serve(test_input_required_result_tampered_state)
