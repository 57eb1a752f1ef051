"""The types of the catalog (`catalog`). Only type checkers use this module: import it under `TYPE_CHECKING`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict

if TYPE_CHECKING:
    from mcp_functions.protocol.wire_types import JSONObject, ListEntry, ServerInfo

ListName: TypeAlias = Literal["tools", "prompts", "resources", "resourceTemplates"]
PropertyOfTools: TypeAlias = Literal["asks", "formless", "relays", "apps"]
# For each list, the names or URIs with the folder of the Lambda function that serves them. An adopted server may also
# serve names that no list has; their key is "*" (UNLISTED_KEY).
Folders: TypeAlias = "dict[ListName, dict[str, str]]"


class Server(TypedDict, total=False):
    """What an author writes about a server. A server of another library (`adopt`) has the last two members."""

    instructions: str
    serverInfo: ServerInfo
    extensions: dict[str, JSONObject]  # the settings of each
    order: dict[ListName, list[str]]  # for each list, its names or URIs in the order of that server


class Hidden(TypedDict, total=False):
    """For each list, the names or URIs that only callers with these scopes see (`visibility`)."""

    tools: dict[str, list[str]]
    prompts: dict[str, list[str]]
    resources: dict[str, list[str]]
    resourceTemplates: dict[str, list[str]]
    servers: dict[str, list[list[str]]]  # index -> the scopes of each handler, if all are hidden


class Properties(TypedDict, total=False):
    """What has a property. An empty member is left out."""

    scopes: list[str]  # the OAuth scopes that handlers require
    tasks: list[str]  # the functions whose calls may become tasks
    asks: list[str]  # the tools that may ask their user
    formless: list[str]  # those of them whose questions no form of an app shows (MCP Apps)
    relays: list[str]  # those of them that let the model pass on the user's answers
    apps: list[str]  # the tools that only an app may call


class _Lists(TypedDict):
    """The entries of each list, as clients get them, and what else every catalog has."""

    tools: list[ListEntry]
    prompts: list[ListEntry]
    resources: list[ListEntry]
    resourceTemplates: list[ListEntry]
    functions: Folders
    completions: bool  # whether any handler completes arguments
    logging: bool  # whether any handler sends log messages


class Catalog(_Lists, Properties, total=False):
    """The tools, prompts and resources of a server. A member of this class is left out if it would be empty."""

    servers: list[Server]
    front_door: Server  # of the whole server; its `serverInfo` replaces those of `servers`
    methods: dict[str, str]  # of extensions of adopted servers ("skills/list"), with their folders
    hidden: Hidden
    has_form: bool  # whether the client sees the toolkit's form (`apps.listings`); no file has it
    skills: dict[str, str]  # URI -> digest (`skills`); their files are in skills.json
