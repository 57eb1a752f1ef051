"""A tool that asks only the client's model, so that it works for a client with no other capability."""

from mcp_functions import Sample, serve, tool


@tool
def test_input_required_result_capabilities(*, sample: Sample) -> str:
    """Greet in the words of the client's model."""
    said = sample("greeting", "Generate a greeting", max_tokens=50)
    return f"{said['model']} greets you."


handler = serve(test_input_required_result_capabilities)
