"""The specification's content types as frozen data, which an author's function returns beside plain values.

`wire()` writes each as JSON, with bytes as base64.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from mcp_functions.protocol import content_blocks
from mcp_functions.protocol.plain_values import BYTES, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from _typeshed import DataclassInstance

    from mcp_functions.protocol.foreign_types import Model
    from mcp_functions.protocol.wire_types import Annotations, Icon, Role


WIRE_NAMES = {"mime_type": "mimeType", "meta": "_meta"}


def _given(**fields: object) -> dict[str, Any]:
    """Write the fields that are not None, and check the hints among them."""
    given: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
    if "annotations" in given or "icons" in given:
        from mcp_functions.protocol import hints  # noqa: PLC0415 - most content has none

        if "annotations" in given:
            given["annotations"] = hints.read_annotations(given["annotations"])
        if "icons" in given:
            given["icons"] = hints.read_icons(given["icons"])
    if "_meta" in given:
        given["_meta"] = to_json(dict(given["_meta"]))
    return given


def _write(content: DataclassInstance, type_: str, **changes: object) -> dict[str, Any]:
    """Write the fields of a content type under their names on the wire."""
    members = {WIRE_NAMES.get(field.name, field.name): getattr(content, field.name) for field in fields(content)}
    return _given(**{"type": type_, **members, **changes})


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
        return _write(self, "text")


@dataclass(frozen=True, slots=True)
class Media:
    """Bytes of a picture or a sound."""

    type: ClassVar[str]
    data: bytes
    mime_type: str
    annotations: Annotations | Model | None = None
    meta: Mapping[str, Any] | None = None

    def wire(self) -> dict[str, Any]:
        """Write it as ImageContent or AudioContent."""
        return _write(self, self.type, data=_encoded(self.data))


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

    def wire(self) -> dict[str, Any]:
        """Write it as TextResourceContents or BlobResourceContents."""
        text = self.contents if isinstance(self.contents, str) else None
        blob = _encoded(self.contents) if isinstance(self.contents, bytes) else None
        return _given(uri=self.uri, mimeType=self.mime_type, text=text, blob=blob, _meta=self.meta)


@dataclass(frozen=True, slots=True)
class EmbeddedResource:
    """A resource's contents inside a result (EmbeddedResource)."""

    resource: ResourceContents | Model
    annotations: Annotations | Model | None = None
    meta: Mapping[str, Any] | None = None

    def wire(self) -> dict[str, Any]:
        """Write it as EmbeddedResource."""
        resource = content_blocks.contents(self.resource, "")
        return _write(self, "resource", resource=resource)


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
        return _write(self, "resource_link", icons=self.icons or None)


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
    """A tool's whole result, for an author who sets more of it than its value."""

    content: str | Sequence[str | Text | Image | Audio | EmbeddedResource | ResourceLink | Model] = ()
    structured_content: Any = ...
    is_error: bool = False
    meta: Mapping[str, Any] | None = None
