"""The objects of the specification (schema.ts of 2026-07-28) as TypedDicts, with the members that this package uses.

Messages are plain dicts; these types name their members. One type stands for all requests, and one for all results:
their members are listed by method. Only type checkers use this module: import it under `TYPE_CHECKING`.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, Protocol, TypeAlias, TypedDict

JSONValue: TypeAlias = Any  # a recursive type would need a cast at each use
JSONObject: TypeAlias = "dict[str, Any]"
RequestId: TypeAlias = "str | int"
Role: TypeAlias = Literal["user", "assistant"]
TaskStatus: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]


# ---- Messages


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
    data: NotRequired[JSONValue]


# Information about a message (MetaObject). It may have other members, and those of this toolkit (`constants.OWN_META`).
Meta = TypedDict(
    "Meta",
    {
        "io.modelcontextprotocol/protocolVersion": str,
        "io.modelcontextprotocol/clientCapabilities": "ClientCapabilities",
        "io.modelcontextprotocol/clientInfo": "Implementation",
        "io.modelcontextprotocol/serverInfo": "Implementation",
        "io.modelcontextprotocol/logLevel": str,
        "io.modelcontextprotocol/related-task": JSONObject,  # of 2025-11-25
        "progressToken": RequestId,
        "mcp-functions/form": JSONObject,
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


class ServerInfo(TypedDict, total=False):
    """What a server says of itself, beside its name and version."""

    title: str
    description: str
    websiteUrl: str
    icons: list[Icon]


class Implementation(ServerInfo, total=False):
    """The name and version of a client or a server, and what it says of itself."""

    name: str
    version: str


# ---- Requests and results


class Params(TypedDict, total=False):
    """The params of a request or a notification. A client may send others."""

    _meta: Meta
    # tools/call, prompts/get and resources/read
    name: str
    uri: str
    arguments: JSONObject
    inputResponses: InputResponses
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


class ResultObject(TypedDict, total=False):
    """The result of a request."""

    _meta: Meta
    resultType: Literal["complete", "input_required", "task"]
    # tools/call
    content: list[ContentBlock]
    structuredContent: JSONValue
    isError: bool
    # prompts/get and resources/read
    description: str
    messages: list[PromptMessage]
    contents: list[ContentBlock]
    # a result that asks
    inputRequests: InputRequests
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
    status: TaskStatus
    statusMessage: str
    createdAt: str
    lastUpdatedAt: str
    pollIntervalMs: int
    result: ResultObject
    error: Error
    # the skills extension
    skills: list[SkillEntry]
    skill: SkillEntry
    # initialize, in revisions of 2025
    protocolVersion: str
    serverInfo: Implementation


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
    icons: list[Icon]
    resource: ContentBlock
    annotations: Annotations
    _meta: Meta


class PromptMessage(TypedDict):
    """A message of a prompt."""

    role: Role
    content: ContentBlock


# ---- Questions of a server, and their answers


InputRequests: TypeAlias = "dict[str, InputRequest]"  # by key
InputResponses: TypeAlias = "dict[str, InputResponse]"


class InputRequest(TypedDict):
    """A question of a server, in the `inputRequests` of a result."""

    method: str
    params: NotRequired[InputRequestParams]


class InputRequestParams(TypedDict, total=False):
    """The params of a question."""

    _meta: Meta
    # elicitation/create
    mode: Literal["form", "url"]
    message: str
    requestedSchema: Schema
    url: str
    elicitationId: str
    # sampling/createMessage
    messages: list[SamplingMessage]
    includeContext: str
    maxTokens: int
    metadata: JSONObject
    tools: list[ListEntry]
    toolChoice: JSONObject


class SamplingMessage(TypedDict):
    """A message for the client's model."""

    role: Role
    content: ContentBlock | list[ContentBlock]


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
    roots: list[JSONObject]  # roots/list
    # an error in place of a result: only an elicitation has an action to refuse it
    code: int
    message: str


# ---- What is listed


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
    arguments: list[PromptArgument]  # of a prompt
    # a resource, or a template
    uri: str
    uriTemplate: str
    mimeType: str
    size: int


class PromptArgument(TypedDict):
    """An argument of a prompt."""

    name: str
    title: NotRequired[str]
    description: NotRequired[str]
    required: NotRequired[bool]


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


class Icon(TypedDict):
    """An image that a client may show beside a name."""

    src: str
    mimeType: NotRequired[str]
    sizes: NotRequired[list[str]]
    theme: NotRequired[Literal["light", "dark"]]


class Model(Protocol):
    """A model of the official SDK, which an author may give instead of a dict."""

    def model_dump(self, *, mode: str, by_alias: bool, exclude_none: bool) -> dict[str, Any]:
        """Write it as a dict."""


class SkillEntry(TypedDict):
    """A skill in a list (SEP-2640): the YAML of its SKILL.md, and its files."""

    uri: str
    frontmatter: JSONObject
    resources: list[SkillFile]


class SkillFile(TypedDict):
    """A file of a skill (SEP-2640)."""

    uri: str
    size: int
    digest: str


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
        "discriminator": "Discriminator",  # OpenAPI's, of a tagged union
        "properties": "dict[str, Schema]",
        "required": list[str],
        "additionalProperties": "bool | Schema",
        "patternProperties": "dict[str, Schema]",
        "propertyNames": "Schema",
        "minProperties": int,
        "maxProperties": int,
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
        "examples": list[JSONValue],
        "deprecated": bool,
        "readOnly": bool,
        "writeOnly": bool,
        "$comment": str,
        "x-mcp-header": str,
    },
    total=False,
)


class Discriminator(TypedDict):
    """The name of the tag, and the `$ref` of the member for each tag."""

    propertyName: str
    mapping: dict[str, str]
