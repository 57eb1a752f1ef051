"""The types of the catalog (`catalog`). Only type checkers use them: import this module under `TYPE_CHECKING`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict

if TYPE_CHECKING:
    from mcp_functions.protocol.wire_types import JSONObject, ListEntry, ServerInfo

ListName: TypeAlias = Literal["tools", "prompts", "resources", "resourceTemplates"]
PropertyOfTools: TypeAlias = Literal["asks", "formless", "relays", "apps"]


class Server(TypedDict, total=False):
    """What an author writes about a server. A server of another library (`adopt`) has the last two members."""

    instructions: str
    serverInfo: ServerInfo
    # the settings of each extension
    extensions: dict[str, JSONObject]
    # for each list, its names or URIs in the order of that server
    order: dict[ListName, list[str]]


class Folders(TypedDict):
    """For each list, the names or URIs with the folder of the Lambda function that serves them.

    An adopted server may also serve names that no list has; their key is "*" (UNLISTED_KEY).
    """

    tools: dict[str, str]
    prompts: dict[str, str]
    resources: dict[str, str]
    resourceTemplates: dict[str, str]


class _Lists(TypedDict):
    # the entries of each list, as clients get them
    tools: list[ListEntry]
    prompts: list[ListEntry]
    resources: list[ListEntry]
    resourceTemplates: list[ListEntry]
    functions: Folders
    # whether any handler completes arguments, or sends log messages
    completions: bool
    logging: bool


class Hidden(TypedDict, total=False):
    """For each list, the names or URIs that only callers with these scopes see (`visibility`)."""

    tools: dict[str, list[str]]
    prompts: dict[str, list[str]]
    resources: dict[str, list[str]]
    resourceTemplates: dict[str, list[str]]
    # by their index, the servers whose handlers are all hidden, with the scopes of each handler
    servers: dict[str, list[list[str]]]


class Properties(TypedDict, total=False):
    """What has a property: the tools that ask, for example. An empty member is left out."""

    # the OAuth scopes that handlers require
    scopes: list[str]
    # the functions whose calls may become tasks
    tasks: list[str]
    # the tools that may ask their user
    asks: list[str]
    # those of them whose questions are not shown as a form of an app (MCP Apps)
    formless: list[str]
    # those of them that let the model pass on the user's answers
    relays: list[str]
    # the tools that only an app may call
    apps: list[str]


class Catalog(_Lists, Properties, total=False):
    """The tools, prompts and resources of a server. A member of this class is left out if it would be empty."""

    servers: list[Server]
    # what a front door says of the whole server; its `serverInfo` replaces those of `servers`
    endpoint: Server
    # the methods of extensions of adopted servers ("skills/list"), with the folder of each
    methods: dict[str, str]
    hidden: Hidden
    # whether the client can be shown the toolkit's form (`apps.listings`); no file has it
    has_form: bool
    # the URIs of skills with a digest of each (`skills`). Their files are in skills.json
    skills: dict[str, str]
