"""TypedDicts of the specification (schema.ts of 2026-07-28), as far as this server reads or writes them.

Messages are plain dicts. These types have the names of the schema. Only type checkers use them.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, Protocol, TypeAlias, TypedDict

RequestId: TypeAlias = "str | int"
JSONValue: TypeAlias = Any  # a recursive type would need a cast at each use
JSONObject: TypeAlias = "dict[str, Any]"
Role: TypeAlias = Literal["user", "assistant"]


class Model(Protocol):
    """A model of the official SDK, which an author may give instead of a dict."""

    def model_dump(self, *, mode: str, by_alias: bool, exclude_none: bool) -> dict[str, Any]:
        """Write it as a dict."""


class JSONRPCRequest(TypedDict):
    """A request that expects a response."""

    jsonrpc: Literal["2.0"]
    id: RequestId
    method: str
    params: JSONObject


class JSONRPCNotification(TypedDict):
    """A notification, which expects no response."""

    jsonrpc: Literal["2.0"]
    method: str
    params: JSONObject


class Icon(TypedDict):
    """An image that a client may show beside a name."""

    src: str
    mimeType: NotRequired[str]
    sizes: NotRequired[list[str]]
    theme: NotRequired[Literal["light", "dark"]]


class ServerInfo(TypedDict, total=False):
    """What a server says of itself, beside its name and version (Implementation)."""

    title: str
    description: str
    websiteUrl: str
    icons: list[Icon]


class Annotations(TypedDict, total=False):
    """Hints about how a client should use content."""

    audience: list[Role]
    priority: float
    lastModified: str


class ToolAnnotations(TypedDict, total=False):
    """Hints about what a tool does. A client need not trust them."""

    title: str
    readOnlyHint: bool
    destructiveHint: bool
    idempotentHint: bool
    openWorldHint: bool
