"""A prompt with arguments, and suggestions for one of them."""

from collections.abc import Mapping
from typing import Annotated

from mcp_functions import prompt, serve


@prompt
def test_prompt_with_arguments(
    arg1: Annotated[str, "First test argument"], arg2: Annotated[str, "Second test argument"]
) -> str:
    """Write a prompt with two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@test_prompt_with_arguments.complete("arg1")
def arg1(value: str, arguments: Mapping[str, str]) -> list[str]:  # noqa: ARG001 - the other arguments so far
    """Suggest how the first argument goes on."""
    return [word for word in ("paris", "park", "party", "test", "testing") if word.startswith(value)]


handler = serve(test_prompt_with_arguments)
