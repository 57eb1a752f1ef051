"""TypedDicts of the specification (schema.ts of 2026-07-28), as far as this server reads or writes them.

Messages are plain dicts. These types have the names of the schema. Only type checkers use them: other modules import
them under `TYPE_CHECKING`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NotRequired, Protocol, TypeAlias, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping

RequestId: TypeAlias = "str | int"
JSONValue: TypeAlias = Any  # a recursive type would need a cast at each use
JSONObject: TypeAlias = "dict[str, Any]"
Role: TypeAlias = Literal["user", "assistant"]


class Model(Protocol):
    """A model of the official SDK, which an author may give instead of a dict."""

    def model_dump(self, *, mode: str, by_alias: bool, exclude_none: bool) -> dict[str, Any]:
        """Write it as a dict."""


# Information about a request or a result (RequestMetaObject, MetaObject). It may have other members.
Meta = TypedDict(
    "Meta",
    {
        "io.modelcontextprotocol/protocolVersion": str,
        "io.modelcontextprotocol/clientCapabilities": "ClientCapabilities",
        "io.modelcontextprotocol/clientInfo": "Implementation",
        "io.modelcontextprotocol/serverInfo": "Implementation",
        "io.modelcontextprotocol/logLevel": str,
        "progressToken": RequestId,
        # of this toolkit (`constants.OWN_META`)
        "mcp-functions/earlier": str,
        "mcp-functions/task-ttl": int,
    },
    total=False,
)


class ClientCapabilities(TypedDict, total=False):
    """What a client can do. An extension's member has its name, and its settings."""

    elicitation: JSONObject
    sampling: JSONObject
    roots: JSONObject
    extensions: dict[str, JSONObject]


class InputRequest(TypedDict):
    """A question of a server, in the `inputRequests` of a result."""

    method: str
    params: InputRequestParams


class InputRequestParams(TypedDict, total=False):
    """The params of an `elicitation/create`, `sampling/createMessage` or `roots/list`."""

    _meta: Meta
    # elicitation/create
    mode: Literal["form", "url"]
    message: str
    requestedSchema: Schema
    url: str
    elicitationId: str
    # sampling/createMessage
    messages: list[JSONObject]
    modelPreferences: JSONObject
    systemPrompt: str
    includeContext: str
    temperature: float
    maxTokens: int
    stopSequences: list[str]
    metadata: JSONObject
    tools: list[ListEntry]
    toolChoice: JSONObject


class InputResponse(TypedDict, total=False):
    """The answer to a question, in the `inputResponses` of a request: the result of the question's method."""

    # elicitation/create
    action: Literal["accept", "decline", "cancel"]
    # the fields of a form; of sampling/createMessage the content of the message
    content: JSONValue
    # sampling/createMessage
    role: Role
    model: str
    stopReason: str
    # roots/list
    roots: list[JSONObject]
    # an error in place of a result: only an elicitation has an action to refuse it
    code: int
    message: str


class Params(TypedDict, total=False):
    """The params of a request. Each method has some of these members, and a client may send others."""

    _meta: Meta
    # tools/call, prompts/get and resources/read
    name: str
    uri: str
    arguments: JSONObject
    inputResponses: Mapping[str, JSONObject]
    requestState: str
    # the lists
    cursor: str
    # completion/complete
    ref: JSONObject
    argument: JSONObject
    context: JSONObject
    # the tasks extension
    taskId: str
    task: JSONObject
    # notifications
    requestId: RequestId
    reason: str
    progressToken: RequestId
    progress: float
    total: float
    message: str
    logger: str
    data: JSONValue
    # revisions of 2025
    protocolVersion: str
    capabilities: ClientCapabilities
    clientInfo: Implementation
    level: str


class JSONRPCRequest(TypedDict):
    """A request that expects a response."""

    jsonrpc: Literal["2.0"]
    id: RequestId
    method: str
    params: Params


class JSONRPCNotification(TypedDict):
    """A notification, which expects no response."""

    jsonrpc: Literal["2.0"]
    method: str
    params: Params


class JSONRPCMessage(TypedDict, total=False):
    """Any message, as it was received. A request has a `method`, a response has a `result` or an `error`."""

    jsonrpc: Literal["2.0"]
    id: RequestId
    method: str
    params: Params
    result: ResultObject
    error: Error


class Error(TypedDict):
    """What went wrong, in place of a result."""

    code: int
    message: str
    data: NotRequired[JSONObject]


class JSONRPCResponse(TypedDict):
    """A response: it has a `result` or an `error`."""

    jsonrpc: Literal["2.0"]
    id: RequestId | None
    result: NotRequired[ResultObject]
    error: NotRequired[Error]


class ResultObject(TypedDict, total=False):
    """The result of a request. Each method has some of these members."""

    _meta: Meta
    resultType: Literal["complete", "input_required", "task"]
    # tools/call
    content: list[ContentBlock]
    structuredContent: JSONValue
    isError: bool
    # prompts/get and resources/read
    description: str
    messages: list[JSONObject]
    contents: list[ContentBlock]
    # a result that asks
    inputRequests: dict[str, InputRequest]
    requestState: str
    # the lists
    tools: list[ListEntry]
    prompts: list[ListEntry]
    resources: list[ListEntry]
    resourceTemplates: list[ListEntry]
    nextCursor: str
    ttlMs: int
    cacheScope: Literal["public", "private"]
    # server/discover
    supportedVersions: list[str]
    capabilities: JSONObject
    instructions: str
    # completion/complete
    completion: JSONObject
    # the tasks extension
    taskId: str
    status: Literal["working", "input_required", "completed", "failed", "cancelled"]
    statusMessage: str
    createdAt: str
    lastUpdatedAt: str
    pollIntervalMs: int
    result: ResultObject
    error: Error


class ContentBlock(TypedDict, total=False):
    """A part of a result: text, an image, audio, a link or the contents of a resource. `type` tells which."""

    type: Literal["text", "image", "audio", "resource_link", "resource"]
    text: str
    data: str
    blob: str
    mimeType: str
    uri: str
    name: str
    title: str
    description: str
    size: int
    resource: ContentBlock
    annotations: Annotations
    _meta: Meta


class ListEntry(TypedDict, total=False):
    """A tool, a prompt, a resource or a resource template in a list. Only the first has an `inputSchema`."""

    name: str
    title: str
    description: str
    icons: list[Icon]
    _meta: JSONObject
    # a tool
    inputSchema: Schema
    outputSchema: Schema
    annotations: ToolAnnotations | Annotations
    execution: JSONObject
    # a prompt
    arguments: list[JSONObject]
    # a resource, or a template
    uri: str
    uriTemplate: str
    mimeType: str
    size: int


class SkillFile(TypedDict):
    """A file of a skill (SEP-2640)."""

    uri: str
    size: int
    digest: str


class SkillEntry(TypedDict):
    """A skill in a list (SEP-2640): the YAML of its SKILL.md, and its files."""

    uri: str
    frontmatter: JSONObject
    resources: list[SkillFile]


# A JSON Schema of 2020-12, with the keywords that this package writes and reads. It may have others.
Schema = TypedDict(
    "Schema",
    {
        "$schema": str,
        "$defs": "dict[str, Schema]",
        "$ref": str,
        "type": "str | list[str]",
        "title": str,
        "description": str,
        "default": JSONValue,
        "const": JSONValue,
        "enum": list[JSONValue],
        "enumNames": list[str],
        "anyOf": "list[Schema]",
        "oneOf": "list[Schema]",
        "allOf": "list[Schema]",
        "properties": "dict[str, Schema]",
        "required": list[str],
        "additionalProperties": "bool | Schema",
        "propertyNames": "Schema",
        "items": "bool | Schema",
        "prefixItems": "list[Schema]",
        "minItems": int,
        "maxItems": int,
        "uniqueItems": bool,
        "format": str,
        "pattern": str,
        "minLength": int,
        "maxLength": int,
        "minimum": float,
        "maximum": float,
        "exclusiveMinimum": float,
        "exclusiveMaximum": float,
        "multipleOf": float,
        "contentEncoding": str,
        "contentMediaType": str,
        "x-mcp-header": str,
    },
    total=False,
)


class Icon(TypedDict):
    """An image that a client may show beside a name."""

    src: str
    mimeType: NotRequired[str]
    sizes: NotRequired[list[str]]
    theme: NotRequired[Literal["light", "dark"]]


class Implementation(TypedDict, total=False):
    """The name and version of a client or a server, and what it says of itself."""

    name: str
    version: str
    title: str
    description: str
    websiteUrl: str
    icons: list[Icon]


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
