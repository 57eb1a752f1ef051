"""A resource that clients of 2025 subscribe to. It never changes, so nobody is ever told that it did."""

from mcp_functions import resource, serve


@resource("test://watched-resource", name="watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    """Read what is watched."""
    return "Watched resource content"


handler = serve(watched_resource)
