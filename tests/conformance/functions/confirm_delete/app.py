"""A task that asks before it acts."""

from pydantic import BaseModel

from mcp_functions import Elicit, serve, tool


class Confirmation(BaseModel):
    confirm: bool


@tool(task="allowed")
def confirm_delete(filename: str, *, elicit: Elicit) -> str:
    """Delete a file, if the user really wants that."""
    if elicit("confirm", f"Really delete {filename}?", Confirmation).confirm:
        return f"Deleted {filename}."
    return f"Kept {filename}."


handler = serve(confirm_delete)
