"""The specification's content types as frozen data, which an author's function returns beside plain values.

`wire()` writes each as a JSON object, with bytes as base64:

    Image(b"GIF89a", mime_type="image/gif")  ->  {"type": "image", "data": "R0lGODlh", "mimeType": "image/gif"}

A field that is None is absent from the object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

from mcp_functions.protocol import content_blocks, hints
from mcp_functions.protocol.plain_values import to_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal

    from mcp_functions.protocol import wire_types
    from mcp_functions.protocol.wire_types import Annotations, ContentBlock, Icon, Model, Role


@dataclass(frozen=True, slots=True)
class Text:
    """Text for the model or the user (TextContent)."""

    type: ClassVar[Literal["text"]] = "text"
    text: str
    annotations: Annotations | Model | None = None
    meta: Mapping[str, Any] | None = None

    def wire(self) -> ContentBlock:
        """Write it as TextContent."""
        return {"type": self.type, "text": self.text, **_annotations_and_meta(self)}


@dataclass(frozen=True, slots=True)
class Media:
    """Bytes of a picture or a sound; the base class of Image and Audio."""

    type: ClassVar[Literal["image", "audio"]]
    data: bytes
    mime_type: str
    annotations: Annotations | Model | None = None
    meta: Mapping[str, Any] | None = None

    def wire(self) -> ContentBlock:
        """Write it as ImageContent or AudioContent."""
        data = content_blocks.write_bytes(self.data)
        return {"type": self.type, "data": data, "mimeType": self.mime_type, **_annotations_and_meta(self)}


class Image(Media):
    """A picture (ImageContent)."""

    __slots__ = ()
    type = "image"


class Audio(Media):
    """A sound (AudioContent)."""

    __slots__ = ()
    type = "audio"


@dataclass(frozen=True, slots=True)
class ResourceContents:
    """The text or the bytes of a resource (TextResourceContents, BlobResourceContents)."""

    uri: str
    contents: str | bytes
    mime_type: str | None = None
    meta: Mapping[str, Any] | None = None

    def wire(self) -> ContentBlock:
        """Write it as TextResourceContents or BlobResourceContents."""
        return content_blocks.write_contents(self.uri, self.contents, self.mime_type, self.meta)


@dataclass(frozen=True, slots=True)
class EmbeddedResource:
    """A resource's contents inside a result (EmbeddedResource)."""

    type: ClassVar[Literal["resource"]] = "resource"
    resource: ResourceContents | Model
    annotations: Annotations | Model | None = None
    meta: Mapping[str, Any] | None = None

    def wire(self) -> ContentBlock:
        """Write it as EmbeddedResource."""
        resource = content_blocks.resource_contents(self.resource, uri="")  # they have a URI of their own
        return {"type": self.type, "resource": resource, **_annotations_and_meta(self)}


@dataclass(frozen=True, slots=True)
class ResourceLink:
    """A resource that the client may read (ResourceLink)."""

    type: ClassVar[Literal["resource_link"]] = "resource_link"
    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None  # bytes
    annotations: Annotations | Model | None = None
    icons: Sequence[Icon | Model] | None = None
    meta: Mapping[str, Any] | None = None

    def wire(self) -> ContentBlock:
        """Write it as ResourceLink."""
        optional = {
            "title": self.title,
            "description": self.description,
            "mimeType": self.mime_type,
            "size": self.size,
            "icons": hints.read_icons(self.icons),
        }
        present = cast("ContentBlock", {name: value for name, value in optional.items() if value is not None})
        return {"type": self.type, "uri": self.uri, "name": self.name, **present, **_annotations_and_meta(self)}


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a prompt."""

    role: Role
    content: str | Text | Image | Audio | EmbeddedResource | ResourceLink | Model

    def wire(self) -> wire_types.PromptMessage:
        """Write it as PromptMessage."""
        return content_blocks.messages(self)[0]


@dataclass(frozen=True, slots=True)
class CallToolResult:
    """A tool's whole result, for an author who sets more of it than its value."""

    content: str | Sequence[str | Text | Image | Audio | EmbeddedResource | ResourceLink | Model] = ()
    structured_content: Any = ...  # `...` means that there is none, because None is a value of JSON
    is_error: bool = False
    meta: Mapping[str, Any] | None = None


def _annotations_and_meta(block: Text | Media | EmbeddedResource | ResourceLink) -> ContentBlock:
    """Write the two members that every content block may have."""
    members: ContentBlock = {}
    if block.annotations is not None:
        members["annotations"] = hints.read_annotations(block.annotations)
    if block.meta is not None:
        members["_meta"] = to_json(dict(block.meta))
    return members
