"""A resource that is text."""

from mcp_functions import resource, serve


@resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """Read a text that never changes."""
    return "This is the content of the static text resource."


handler = serve(static_text)
