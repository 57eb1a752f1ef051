"""A tool that answers with several kinds of content at once."""

from base64 import b64decode

from mcp_functions import serve, tool
from mcp_functions.content import EmbeddedResource, Image, ResourceContents

PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==")


@tool
def test_multiple_content_types() -> list[str | Image | EmbeddedResource]:
    """Return text, a picture and a resource."""
    resource = ResourceContents("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
    return ["Multiple content types test:", Image(PNG, "image/png"), EmbeddedResource(resource)]


handler = serve(test_multiple_content_types)
