"""A resource template that asks for a reason, and redacts the ticket without one."""

from typing import Annotated

from mcp_functions import Elicit, NotAnswered, resource, serve
from mcp_functions.annotated import Length

Reason = Annotated[str, Length(3, 200), "For the audit trail"]


@resource("tickets://{project}/{number}", mime_type="text/plain")
def ticket(project: str, number: int, *, elicit: Elicit) -> str:
    """Read a support ticket."""
    try:
        reason = elicit("reason", f"Why do you need to read {project}-{number}?", Reason)
    except NotAnswered:
        return f"{project}-{number}: [redacted]"
    return f"{project}-{number}: the printer on floor 3 is on fire. (Read because: {reason})"


handler = serve(ticket)
