"""A tool that answers with a resource inside its result."""

from mcp_functions import serve, tool
from mcp_functions.content import EmbeddedResource, ResourceContents


@tool
def test_embedded_resource() -> EmbeddedResource:
    """Return a resource and what it holds."""
    text = "This is an embedded resource content."
    return EmbeddedResource(ResourceContents("test://embedded-resource", text, "text/plain"))


handler = serve(test_embedded_resource)
