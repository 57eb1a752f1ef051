"""A resource template that asks for a reason, and shows less to those who give none."""

from pydantic import BaseModel, Field

from mcp_functions import Elicit, NotAnswered, resource, serve


class Reason(BaseModel):
    reason: str = Field(min_length=3, max_length=200, description="For the audit trail")


@resource("tickets://{project}/{number}", mime_type="text/plain")
def ticket(project: str, number: int, *, elicit: Elicit) -> str:
    """Read a support ticket."""
    try:
        why = elicit("reason", f"Why do you need to read {project}-{number}?", Reason)
    except NotAnswered:
        return f"{project}-{number}: [redacted]"
    return f"{project}-{number}: the printer on floor 3 is on fire. (Read because: {why.reason})"


handler = serve(ticket)
