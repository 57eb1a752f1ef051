"""A form that is filled in already: a default of every primitive type (SEP-1034)."""

from typing import Literal

from pydantic import BaseModel

from mcp_functions import Elicit, serve, tool


class Profile(BaseModel):
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


@tool
def test_elicitation_sep1034_defaults(*, elicit: Elicit) -> str:
    """Ask the user to look through a form."""
    profile = elicit("profile", "Please review and update the form fields with defaults", Profile)
    return f"Elicitation completed: action=accept, content={profile.model_dump_json()}"


handler = serve(test_elicitation_sep1034_defaults)
