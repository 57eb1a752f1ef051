"""A resource that is bytes."""

from base64 import b64decode

from mcp_functions import resource, serve

PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==")


@resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """Read a picture that never changes."""
    return PNG


handler = serve(static_binary)
