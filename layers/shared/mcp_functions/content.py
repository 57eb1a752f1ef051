"""What an author's function may return besides plain values: the specification's content types, as frozen data.

Each knows how it looks on the wire (`wire()`); bytes become base64 there.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_functions.schema import Annotations, Icon, Role


def _given(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    return {name: value for name, value in fields.items() if value is not None}


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@dataclass(frozen=True, slots=True)
class Text:
    """Text for the model or the user (TextContent)."""

    text: str
    annotations: Annotations | None = None
    meta: Mapping[str, Any] | None = None

    def wire(self) -> dict[str, Any]:
        """Write it as TextContent."""
        return _given(type="text", text=self.text, annotations=self.annotations, _meta=self.meta)


@dataclass(frozen=True, slots=True)
class Image:
    """A picture (ImageContent)."""

    data: bytes
    mime_type: str
    annotations: Annotations | None = None
    meta: Mapping[str, Any] | None = None

    def wire(self) -> dict[str, Any]:
        """Write it as ImageContent."""
        return _media("image", self)


@dataclass(frozen=True, slots=True)
class Audio:
    """A sound (AudioContent)."""

    data: bytes
    mime_type: str
    annotations: Annotations | None = None
    meta: Mapping[str, Any] | None = None

    def wire(self) -> dict[str, Any]:
        """Write it as AudioContent."""
        return _media("audio", self)


def _media(kind: str, media: Image | Audio) -> dict[str, Any]:
    return _given(
        type=kind,
        data=_encoded(media.data),
        mimeType=media.mime_type,
        annotations=media.annotations,
        _meta=media.meta,
    )


@dataclass(frozen=True, slots=True)
class ResourceContents:
    """What a resource holds: text, or bytes (TextResourceContents, BlobResourceContents)."""

    uri: str
    contents: str | bytes
    mime_type: str | None = None
    meta: Mapping[str, Any] | None = None

    def wire(self) -> dict[str, Any]:
        """Write it as TextResourceContents or BlobResourceContents."""
        text = self.contents if isinstance(self.contents, str) else None
        blob = _encoded(self.contents) if isinstance(self.contents, bytes) else None
        return _given(uri=self.uri, mimeType=self.mime_type, text=text, blob=blob, _meta=self.meta)


@dataclass(frozen=True, slots=True)
class EmbeddedResource:
    """A resource's contents inside a result (EmbeddedResource)."""

    resource: ResourceContents
    annotations: Annotations | None = None
    meta: Mapping[str, Any] | None = None

    def wire(self) -> dict[str, Any]:
        """Write it as EmbeddedResource."""
        return _given(type="resource", resource=self.resource.wire(), annotations=self.annotations, _meta=self.meta)


@dataclass(frozen=True, slots=True)
class ResourceLink:
    """A resource that the client may read (ResourceLink)."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Annotations | None = None
    icons: Sequence[Icon] | None = None
    meta: Mapping[str, Any] | None = None

    def wire(self) -> dict[str, Any]:
        """Write it as ResourceLink."""
        return _given(
            type="resource_link",
            uri=self.uri,
            name=self.name,
            title=self.title,
            description=self.description,
            mimeType=self.mime_type,
            size=self.size,
            annotations=self.annotations,
            icons=list(self.icons) if self.icons else None,
            _meta=self.meta,
        )


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a prompt."""

    role: Role
    content: str | Text | Image | Audio | EmbeddedResource | ResourceLink

    def wire(self) -> dict[str, Any]:
        """Write it as PromptMessage."""
        content = Text(self.content) if isinstance(self.content, str) else self.content
        return {"role": self.role, "content": content.wire()}


@dataclass(frozen=True, slots=True)
class CallToolResult:
    """A tool's whole result, where returning a value does not say enough."""

    content: str | Sequence[str | Text | Image | Audio | EmbeddedResource | ResourceLink] = ()
    structured_content: Any = ...
    is_error: bool = False
    meta: Mapping[str, Any] | None = None

    def wire_result(self) -> dict[str, Any]:
        """Write it as CallToolResult."""
        content = [self.content] if isinstance(self.content, str) else self.content
        blocks = [Text(item) if isinstance(item, str) else item for item in content]
        structured = {} if self.structured_content is ... else {"structuredContent": self.structured_content}
        meta = {"_meta": dict(self.meta)} if self.meta else {}
        return {"content": [block.wire() for block in blocks], **structured, "isError": self.is_error, **meta}
