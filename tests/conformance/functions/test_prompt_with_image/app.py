"""A prompt with a picture in it."""

from base64 import b64decode

from mcp_functions import prompt, serve
from mcp_functions.content import Image

PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==")


@prompt
def test_prompt_with_image() -> list[str | Image]:
    """Write a prompt about a picture."""
    return [Image(PNG, "image/png"), "Please analyze the image above."]


handler = serve(test_prompt_with_image)
