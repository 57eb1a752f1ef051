"""The echo of SEP-2322's persistent workflow."""

from pydantic import BaseModel

from mcp_functions import Elicit, serve, tool


class EchoInput(BaseModel):
    input: str


@tool(task="allowed")
def echo(*, elicit: Elicit) -> str:
    """Echo what the user says."""
    return f"Echo: {elicit('echo_input', 'Please provide the input string to echo back', EchoInput).input}"


handler = serve(echo)
