"""A tool that passes a prompt to the client's model."""

from mcp_functions import Sample, serve, tool


@tool
def test_sampling(prompt: str, *, sample: Sample) -> str:
    """Ask the client's model."""
    said = sample("answer", prompt, max_tokens=100)
    match said["content"]:
        case {"type": "text", "text": str(text)}:
            return f"LLM response: {text}"
    return "The model did not answer in words."


handler = serve(test_sampling)
