"""The specification's content types, which an author's function may return, as frozen dataclasses.

`wire()` writes a value as JSON values, with bytes as base64.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol import content_blocks
from mcp_functions.protocol.plain_values import BYTES, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_functions.protocol.foreign_types import Model
    from mcp_functions.protocol.wire_types import Annotations, Icon, Role


def _present(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    present = {name: value for name, value in fields.items() if value is not None}
    if "annotations" in present or "icons" in present:
        from mcp_functions.protocol import hints  # noqa: PLC0415 - most content has none

        checked: dict[str, Any] = {"annotations": hints.read_annotations, "icons": hints.read_icons}
        present |= {name: check(present[name]) for name, check in checked.items() if name in present}
    if "_meta" in present:
        present["_meta"] = to_json(dict(present["_meta"]))
    return present


def _encoded(data: bytes) -> str:
    if not isinstance(data, BYTES):
        message = "its data must be bytes"
        raise TypeError(message)
    return base64.b64encode(data).decode()


@dataclass(frozen=True, slots=True)
class Text:
    """Text for the model or the user (TextContent)."""

    text: str
    annotations: Annotations | Model | None = None
    meta: Mapping[str, Any] | None = None

    def wire(self) -> dict[str, Any]:
        """Write it as TextContent."""
        return _present(type="text", text=self.text, annotations=self.annotations, _meta=self.meta)


@dataclass(frozen=True, slots=True)
class Image:
    """A picture (ImageContent)."""

    data: bytes
    mime_type: str
    annotations: Annotations | Model | None = None
    meta: Mapping[str, Any] | None = None

    def wire(self) -> dict[str, Any]:
        """Write it as ImageContent."""
        return _media("image", self)


@dataclass(frozen=True, slots=True)
class Audio:
    """A sound (AudioContent)."""

    data: bytes
    mime_type: str
    annotations: Annotations | Model | None = None
    meta: Mapping[str, Any] | None = None

    def wire(self) -> dict[str, Any]:
        """Write it as AudioContent."""
        return _media("audio", self)


def _media(kind: str, media: Image | Audio) -> dict[str, Any]:
    return _present(
        type=kind,
        data=_encoded(media.data),
        mimeType=media.mime_type,
        annotations=media.annotations,
        _meta=media.meta,
    )


@dataclass(frozen=True, slots=True)
class ResourceContents:
    """The contents of a resource, text or bytes (TextResourceContents, BlobResourceContents)."""

    uri: str
    contents: str | bytes
    mime_type: str | None = None
    meta: Mapping[str, Any] | None = None

    def wire(self) -> dict[str, Any]:
        """Write it as TextResourceContents or BlobResourceContents."""
        text = self.contents if isinstance(self.contents, str) else None
        blob = _encoded(self.contents) if isinstance(self.contents, bytes) else None
        return _present(uri=self.uri, mimeType=self.mime_type, text=text, blob=blob, _meta=self.meta)


@dataclass(frozen=True, slots=True)
class EmbeddedResource:
    """The contents of a resource inside a result (EmbeddedResource)."""

    resource: ResourceContents | Model
    annotations: Annotations | Model | None = None
    meta: Mapping[str, Any] | None = None

    def wire(self) -> dict[str, Any]:
        """Write it as EmbeddedResource."""
        resource = content_blocks.contents(self.resource, "")
        return _present(type="resource", resource=resource, annotations=self.annotations, _meta=self.meta)


@dataclass(frozen=True, slots=True)
class ResourceLink:
    """A resource that the client may read (ResourceLink)."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Annotations | Model | None = None
    icons: Sequence[Icon | Model] | None = None
    meta: Mapping[str, Any] | None = None

    def wire(self) -> dict[str, Any]:
        """Write it as ResourceLink."""
        return _present(
            type="resource_link",
            uri=self.uri,
            name=self.name,
            title=self.title,
            description=self.description,
            mimeType=self.mime_type,
            size=self.size,
            annotations=self.annotations,
            icons=self.icons or None,
            _meta=self.meta,
        )


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a prompt."""

    role: Role
    content: str | Text | Image | Audio | EmbeddedResource | ResourceLink | Model

    def wire(self) -> dict[str, Any]:
        """Write it as PromptMessage."""
        return content_blocks.messages(self)[0]


@dataclass(frozen=True, slots=True)
class CallToolResult:
    """A whole result of a tool, for structured content, an error or `_meta` beside the content."""

    content: str | Sequence[str | Text | Image | Audio | EmbeddedResource | ResourceLink | Model] = ()
    structured_content: Any = ...
    is_error: bool = False
    meta: Mapping[str, Any] | None = None
