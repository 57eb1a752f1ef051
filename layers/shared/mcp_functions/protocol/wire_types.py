"""The specification's words (schema.ts of 2026-07-28), as far as this server says or reads them.

Messages are plain dicts; these TypedDicts only type them, mirror the schema by name, and are imported for typing alone.
What code needs while running, the names of `_meta` keys and methods, stands in `names.py`.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

RequestId: TypeAlias = "str | int"
ProgressToken: TypeAlias = "str | int"
JSONValue: TypeAlias = Any
JSONObject: TypeAlias = "dict[str, Any]"
Role: TypeAlias = Literal["user", "assistant"]


class JSONRPCRequest(TypedDict):
    """A request that expects a response."""

    jsonrpc: Literal["2.0"]
    id: RequestId
    method: str
    params: JSONObject


class JSONRPCNotification(TypedDict):
    """A notification, which expects none."""

    jsonrpc: Literal["2.0"]
    method: str
    params: JSONObject


class Error(TypedDict):
    """What went wrong: a code, one sentence, and data the sender defines."""

    code: int
    message: str
    data: NotRequired[JSONValue]


class Implementation(TypedDict):
    """The name and version of a client or server."""

    name: str
    version: str
    title: NotRequired[str]
    description: NotRequired[str]
    websiteUrl: NotRequired[str]
    icons: NotRequired[list[Icon]]


class Icon(TypedDict):
    """An image that a client may show beside a name."""

    src: str
    mimeType: NotRequired[str]
    sizes: NotRequired[list[str]]
    theme: NotRequired[Literal["light", "dark"]]


class Annotations(TypedDict, total=False):
    """Hints about how a client should use content."""

    audience: list[Role]
    priority: float
    lastModified: str


class ToolAnnotations(TypedDict, total=False):
    """Hints about what a tool does; a client does not have to believe them."""

    title: str
    readOnlyHint: bool
    destructiveHint: bool
    idempotentHint: bool
    openWorldHint: bool


class Tool(TypedDict):
    """A tool, as `tools/list` describes it."""

    name: str
    inputSchema: JSONObject
    title: NotRequired[str]
    description: NotRequired[str]
    outputSchema: NotRequired[JSONObject]
    annotations: NotRequired[ToolAnnotations]
    icons: NotRequired[list[Icon]]
    _meta: NotRequired[JSONObject]


class PromptArgument(TypedDict):
    """An argument of a prompt; its value is always a string."""

    name: str
    title: NotRequired[str]
    description: NotRequired[str]
    required: NotRequired[bool]


class Prompt(TypedDict):
    """A prompt, as `prompts/list` describes it."""

    name: str
    title: NotRequired[str]
    description: NotRequired[str]
    arguments: NotRequired[list[PromptArgument]]
    icons: NotRequired[list[Icon]]
    _meta: NotRequired[JSONObject]


class Resource(TypedDict):
    """A resource, as `resources/list` describes it."""

    uri: str
    name: str
    title: NotRequired[str]
    description: NotRequired[str]
    mimeType: NotRequired[str]
    size: NotRequired[int]
    annotations: NotRequired[Annotations]
    icons: NotRequired[list[Icon]]
    _meta: NotRequired[JSONObject]


class ResourceTemplate(TypedDict):
    """A family of resources, as `resources/templates/list` describes it."""

    uriTemplate: str
    name: str
    title: NotRequired[str]
    description: NotRequired[str]
    mimeType: NotRequired[str]
    annotations: NotRequired[Annotations]
    icons: NotRequired[list[Icon]]
    _meta: NotRequired[JSONObject]


class ElicitRequestFormParams(TypedDict):
    """A form for the user: a message and a flat schema."""

    message: str
    requestedSchema: JSONObject
    mode: NotRequired[Literal["form"]]


class ElicitRequestURLParams(TypedDict):
    """A page for the user to open."""

    mode: Literal["url"]
    message: str
    url: str


class ElicitRequest(TypedDict):
    """Ask the user something."""

    method: Literal["elicitation/create"]
    params: ElicitRequestFormParams | ElicitRequestURLParams


class CreateMessageRequest(TypedDict):
    """Ask the client's model something."""

    method: Literal["sampling/createMessage"]
    params: JSONObject


class ListRootsRequest(TypedDict):
    """Ask the client which folders it works in."""

    method: Literal["roots/list"]
    params: NotRequired[JSONObject]


InputRequest: TypeAlias = "ElicitRequest | CreateMessageRequest | ListRootsRequest"
InputRequests: TypeAlias = "dict[str, InputRequest]"


class ElicitResult(TypedDict):
    """What the user did with a question."""

    action: Literal["accept", "decline", "cancel"]
    content: NotRequired[JSONObject]


class Result(TypedDict):
    """Every result says what kind it is."""

    resultType: str
    _meta: NotRequired[JSONObject]


class InputRequiredResult(Result):
    """Not finished: the client answers `inputRequests`, echoes `requestState`, and sends its request again."""

    inputRequests: NotRequired[InputRequests]
    requestState: NotRequired[str]


class CallToolResult(Result):
    """What a tool answered."""

    content: list[JSONObject]
    structuredContent: NotRequired[JSONValue]
    isError: NotRequired[bool]


class GetPromptResult(Result):
    """The messages of a prompt."""

    messages: list[JSONObject]
    description: NotRequired[str]


class ReadResourceResult(Result):
    """The contents of a resource, and how long they may be kept."""

    contents: list[JSONObject]
    ttlMs: int
    cacheScope: Literal["public", "private"]


class DiscoverResult(Result):
    """What this server speaks and offers."""

    supportedVersions: list[str]
    capabilities: JSONObject
    ttlMs: int
    cacheScope: Literal["public", "private"]
    instructions: NotRequired[str]
