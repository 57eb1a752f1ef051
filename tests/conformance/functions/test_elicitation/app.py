"""A tool that asks its user for a name and an address."""

from pydantic import BaseModel, Field

from mcp_functions import Cancelled, Declined, Elicit, serve, tool


class User(BaseModel):
    username: str = Field(description="User's response")
    email: str = Field(description="User's email address")


@tool
def test_elicitation(message: str, *, elicit: Elicit) -> str:
    """Ask the user."""
    match elicit.outcome("user", message, User):
        case User() as user:
            return f"User response: accept, {user.model_dump_json()}"
        case Declined():
            return "User response: decline"
        case Cancelled():
            return "User response: cancel"


handler = serve(test_elicitation)
