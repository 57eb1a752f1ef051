"""A resource that the suite subscribes to without asking whether it may: nothing advertises subscriptions."""

from mcp_functions import resource, serve


@resource("test://watched-resource", name="watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    """Read what is watched."""
    return "Watched resource content"


handler = serve(watched_resource)
