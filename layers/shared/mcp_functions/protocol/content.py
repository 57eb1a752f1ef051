"""The specification's content types as frozen data, which an author's function returns beside plain values.

`wire()` writes each as a JSON object, with bytes as base64:

    Image(b"…", mime_type="image/png")  ->  {"type": "image", "data": "4oCm", "mimeType": "image/png"}

A field that is None is absent from the object.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from mcp_functions.protocol import content_blocks, hints
from mcp_functions.protocol.plain_values import BYTES, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from _typeshed import DataclassInstance

    from mcp_functions.protocol.wire_types import Annotations, Icon, Model, Role


def _encode(data: bytes) -> str:
    if not isinstance(data, BYTES):
        message = "its data must be bytes"
        raise TypeError(message)
    return base64.b64encode(data).decode()


WIRE_NAMES = {"mime_type": "mimeType", "meta": "_meta"}  # the fields that have another name in JSON
# How a field of this name becomes JSON; every other field is JSON already.
WRITERS: dict[str, Callable[[Any], object]] = {
    "data": _encode,
    "resource": lambda resource: content_blocks.resource_contents(resource, ""),
    "annotations": hints.read_annotations,
    "icons": hints.read_icons,
    "meta": lambda meta: to_json(dict(meta)),
}


def _members(content: DataclassInstance) -> dict[str, Any]:
    """Write the fields of a content type under their names on the wire, without those that are None."""
    members = {}
    for field in fields(content):
        value = getattr(content, field.name)
        if value is not None and field.name in WRITERS:
            value = WRITERS[field.name](value)
        if value is not None:  # an empty list of icons is written as None
            members[WIRE_NAMES.get(field.name, field.name)] = value
    return members


@dataclass(frozen=True, slots=True)
class _Block:
    """A content block, whose `type` is a constant of its class."""

    type: ClassVar[str]

    def wire(self) -> dict[str, Any]:
        """Write it as the specification's content type of this name."""
        return {"type": self.type, **_members(self)}


@dataclass(frozen=True, slots=True)
class Text(_Block):
    """Text for the model or the user (TextContent)."""

    type: ClassVar[str] = "text"
    text: str
    annotations: Annotations | Model | None = None
    meta: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Media(_Block):
    """Bytes of a picture or a sound."""

    data: bytes
    mime_type: str
    annotations: Annotations | Model | None = None
    meta: Mapping[str, Any] | None = None


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
        members = _members(self)
        contents = members.pop("contents")
        if isinstance(contents, str):
            return {**members, "text": contents}
        return {**members, "blob": _encode(contents)}


@dataclass(frozen=True, slots=True)
class EmbeddedResource(_Block):
    """A resource's contents inside a result (EmbeddedResource)."""

    type: ClassVar[str] = "resource"
    resource: ResourceContents | Model
    annotations: Annotations | Model | None = None
    meta: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ResourceLink(_Block):
    """A resource that the client may read (ResourceLink)."""

    type: ClassVar[str] = "resource_link"
    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Annotations | Model | None = None
    icons: Sequence[Icon | Model] | None = None
    meta: Mapping[str, Any] | None = None


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
    structured_content: Any = ...  # `...` means that there is none, because None is a value of JSON
    is_error: bool = False
    meta: Mapping[str, Any] | None = None
