"""A tool that asks the client's model and nobody else, so that it works for a client that can do no more."""

from mcp_functions import Sample, serve, tool


@tool
def test_input_required_result_capabilities(*, sample: Sample) -> str:
    """Greet in the words of the client's model."""
    said = sample("greeting", "Generate a greeting", max_tokens=50)
    return f"{said['model']} greets you."


handler = serve(test_input_required_result_capabilities)
