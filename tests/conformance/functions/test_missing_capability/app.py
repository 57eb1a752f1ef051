"""A tool that cannot work for a client without a model."""

from mcp_functions import Sample, serve, tool


@tool(requires=["sampling"])
def test_missing_capability(*, sample: Sample) -> str:
    """Let the client's model say something."""
    sample("saying", "Say something.", max_tokens=10)
    return "The model has spoken."


handler = serve(test_missing_capability)
