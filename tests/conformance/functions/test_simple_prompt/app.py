"""A prompt without arguments."""

from mcp_functions import prompt, serve


@prompt
def test_simple_prompt() -> str:
    """Write a simple prompt."""
    return "This is a simple prompt for testing."


handler = serve(test_simple_prompt)
