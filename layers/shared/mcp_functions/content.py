"""What tools, prompts and resources return beside plain values: `from mcp_functions.content import Image`."""

from mcp_functions.protocol.content import (
    Audio,
    CallToolResult,
    EmbeddedResource,
    Image,
    PromptMessage,
    ResourceContents,
    ResourceLink,
    Text,
)

__all__ = [
    "Audio", "CallToolResult", "EmbeddedResource", "Image", "PromptMessage", "ResourceContents", "ResourceLink", "Text",
]  # fmt: skip
