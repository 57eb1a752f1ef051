"""A form of choices, in all five ways to write them (SEP-1330); `enumNames` is the oldest."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from mcp_functions import Elicit, serve, tool
from mcp_functions.annotated import Titles


class Choices(BaseModel):
    untitled_single: Literal["option1", "option2", "option3"]
    titled_single: Annotated[
        Literal["value1", "value2", "value3"], Titles("First Option", "Second Option", "Third Option")
    ]
    legacy_enum: Literal["opt1", "opt2", "opt3"] = Field(json_schema_extra={"enumNames": ["One", "Two", "Three"]})
    untitled_multi: list[Literal["option1", "option2", "option3"]]
    titled_multi: list[
        Annotated[Literal["value1", "value2", "value3"], Titles("First Choice", "Second Choice", "Third Choice")]
    ]


@tool(camel_case=True)
def test_elicitation_sep1330_enums(*, elicit: Elicit) -> str:
    """Ask the user to choose."""
    choices = elicit("choices", "Please select options from the enum fields", Choices)
    return f"Elicitation completed: action=accept, content={choices.model_dump_json()}"


handler = serve(test_elicitation_sep1330_enums)
