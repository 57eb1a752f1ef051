"""A tool that reports progress and then asks: the question must not travel as a request on the stream."""

from pydantic import BaseModel

from mcp_functions import Elicit, Progress, serve, tool


class Confirmation(BaseModel):
    confirm: bool


@tool
def test_streaming_elicitation(*, progress: Progress, elicit: Elicit) -> str:
    """Ask in the middle of the work."""
    progress(50, total=100, message="Half way")
    elicit("confirmation", "Shall I go on?", Confirmation)
    return "Went on."


handler = serve(test_streaming_elicitation)
