"""A tool that answers with a picture."""

from base64 import b64decode

from mcp_functions import serve, tool
from mcp_functions.content import Image

PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==")


@tool
def test_image_content() -> Image:
    """Return a picture of one red pixel."""
    return Image(PNG, "image/png")


handler = serve(test_image_content)
