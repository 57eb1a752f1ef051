"""A prompt with a resource in it."""

from typing import Annotated

from mcp_functions import prompt, serve
from mcp_functions.content import EmbeddedResource, ResourceContents


@prompt
def test_prompt_with_embedded_resource(
    resourceUri: Annotated[str, "URI of the resource to embed"],  # noqa: N803 - the suite's name for it
) -> list[str | EmbeddedResource]:
    """Write a prompt about a resource."""
    contents = ResourceContents(resourceUri, "Embedded resource content for testing.", "text/plain")
    return [EmbeddedResource(contents), "Please process the embedded resource above."]


handler = serve(test_prompt_with_embedded_resource)
