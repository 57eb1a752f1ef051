"""A tool that asks two questions; the second depends on the first answer. The example is that of SEP-2322."""

from datetime import timedelta
from typing import Annotated, Literal, TypedDict

from mcp_functions import Elicit, serve, tool
from mcp_functions.annotated import Number

Resolution = Annotated[Literal["Fixed", "Won't Fix", "Duplicate", "By Design"], "Resolution type for this bug"]


class Original(TypedDict):
    duplicate_of_id: Annotated[Number, "Work item ID of the original bug"]


@tool(camel_case=True, answer_within=timedelta(days=7))
def update_work_item(work_item_id: int, fields: dict[str, str], *, elicit: Elicit) -> str:
    """Update the fields of a work item. Resolving a bug asks how it was resolved."""
    bug = f"Bug #{work_item_id}"
    if fields.get("System.State") != "Resolved":
        return f"{bug} updated: {', '.join(fields) or 'nothing to change'}."

    asked = f"Resolving {bug} requires a resolution. How was this bug resolved?"
    resolution = elicit("resolution", asked, Resolution)
    if resolution != "Duplicate":
        return f"{bug} resolved as {resolution}. State set to Resolved."

    asked = "Since this is a duplicate, which work item is the original?"
    original = elicit("duplicate_of", asked, Original)["duplicate_of_id"]
    return f"{bug} resolved as Duplicate of Bug #{original}. State set to Resolved and duplicate link created."


handler = serve(update_work_item)
