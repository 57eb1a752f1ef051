"""A tool that needs the client's model."""

from mcp_functions import Sample, serve, tool


@tool
def test_input_required_result_sampling(*, sample: Sample) -> str:
    """Ask the client's model for a capital."""
    said = sample("capital_question", "What is the capital of France?", max_tokens=100)
    match said["content"]:
        case {"type": "text", "text": str(text)}:
            return text
    return "The model did not answer in words."


handler = serve(test_input_required_result_sampling)
