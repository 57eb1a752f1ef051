"""The catalog describes the tools, prompts and resources of a server as JSON.

    {
      "tools": [{"name": "book", "inputSchema": {…}}], "prompts": [], "resources": [], "resourceTemplates": [],
      "functions": {"tools": {"book": "booking"}, "prompts": {}, "resources": {}, "resourceTemplates": {}},
      "completions": false, "logging": false, "scopes": ["trips:write"], "asks": ["book"]
    }

The front door is the endpoint of the whole server, and reads this JSON from catalog.json. Every other function builds
the catalog of its own handlers: its tools, prompts and resources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Final, Literal, NoReturn, NotRequired, TypeAlias, TypedDict

    from mcp_functions.handlers.base import Handler

    ListName: TypeAlias = Literal["tools", "prompts", "resources", "resourceTemplates"]
    Entry: TypeAlias = dict[str, Any]  # an entry of a list, as clients get it

    class Catalog(TypedDict):
        """The JSON of a catalog. A member that is not required is left out if it would be empty."""

        # The entries of `tools/list` and of the other list methods.
        tools: list[Entry]
        prompts: list[Entry]
        resources: list[Entry]
        resourceTemplates: list[Entry]
        # For each list, the names or URIs with the folder of the Lambda function that serves them.
        functions: dict[ListName, dict[str, str]]
        # Whether any handler completes arguments, or sends log messages.
        completions: bool
        logging: bool
        # The `instructions` and `serverInfo` of authors. A server of another library (`adopt`) also has `extensions`,
        # and `order`: for each list, its names or URIs in the order of that server.
        servers: NotRequired[list[Mapping[str, Any]]]
        # Sets of names, sorted.
        scopes: NotRequired[list[str]]  # the OAuth scopes that handlers require
        tasks: NotRequired[list[str]]  # the functions whose calls may become tasks
        asks: NotRequired[list[str]]  # the tools that may ask their user
        formless: NotRequired[list[str]]  # those of them whose questions are not shown as a form of an app (MCP Apps)
        relays: NotRequired[list[str]]  # those of them that let the model pass on the user's answers
        apps: NotRequired[list[str]]  # the tools that only an app may call


LISTS_BY_KIND: dict[str, ListName] = {
    "tool": "tools",
    "prompt": "prompts",
    "resource": "resources",
    "resource_template": "resourceTemplates",
}
LIST_NAMES = tuple(LISTS_BY_KIND.values())
NAME_SETS: Final = (  # the members that are sets of names; `Catalog` describes each
    "scopes", "tasks", "asks", "formless", "relays", "apps",
)  # fmt: skip
# In "functions", this key is for names that are in no list. An adopted server may serve some.
UNLISTED_KEY = "*"
# A client that cannot show a question sends the answer to a second tool, the answer tool: `book-form` or `book-answer`.
ANSWER_TOOL_SUFFIXES = ("-form", "-answer")


def build(handlers: Iterable[Handler[..., Any]], folder: str = "") -> Catalog:
    """Describe the handlers of one function; `folder` is its folder."""
    return merge(_describe(handler, folder) for handler in handlers)


def _describe(handler: Handler[..., Any], folder: str) -> Catalog:
    """Write a catalog of one handler. It may have empty members, which `merge` leaves out."""
    list_name = LISTS_BY_KIND[handler.kind]
    catalog: Catalog = {
        "tools": [],
        "prompts": [],
        "resources": [],
        "resourceTemplates": [],
        "functions": {list_name: {handler.key: folder}},
        "completions": handler.has_completers,
        "logging": handler.logs,
        "servers": [handler.server_description] if handler.server_description else [],
        "scopes": list(handler.scopes),
        "tasks": [folder] if handler.task else [],
    }
    entry = handler.describe()
    if entry:  # the handler of an adopted server for UNLISTED_KEY has none
        catalog[list_name].append(entry)
    name_sets = handler.name_sets()
    for name_set in NAME_SETS:
        if name_set in name_sets:
            catalog[name_set] = [handler.name]
    return catalog


def merge(catalogs: Iterable[Catalog]) -> Catalog:
    """Combine several catalogs into one.

    Raises:
        ValueError: two handlers have the same name, or a tool has the name of another tool's answer tool.
    """
    parts = list(catalogs)
    servers = _merge_servers(parts)
    merged: Catalog = {
        "tools": _merge_entries(parts, "tools", servers),
        "prompts": _merge_entries(parts, "prompts", servers),
        "resources": _merge_entries(parts, "resources", servers),
        "resourceTemplates": _merge_entries(parts, "resourceTemplates", servers),
        "functions": {list_name: _merge_functions(parts, list_name) for list_name in LIST_NAMES},
        "completions": any(part["completions"] for part in parts),
        "logging": any(part["logging"] for part in parts),
    }
    if servers:
        merged["servers"] = servers
    for name_set in NAME_SETS:
        names = {name for part in parts if name_set in part for name in part[name_set]}
        if names:
            merged[name_set] = sorted(names)
    _check_answer_tools(merged)
    return merged


def _merge_servers(parts: Iterable[Catalog]) -> list[Mapping[str, Any]]:
    """Collect the descriptions, each once: every handler of a server has the same one."""
    servers: list[Mapping[str, Any]] = []
    for part in parts:
        servers += [server for server in part.get("servers", ()) if server not in servers]
    return servers


def _merge_entries(parts: Iterable[Catalog], list_name: ListName, servers: Iterable[Mapping[str, Any]]) -> list[Entry]:
    """Sort the entries of a list: first our own by name, then those of adopted servers as these order them.

    Servers "SHOULD return tools in a deterministic order" (server/tools): a client's cached prompt then stays valid.
    """
    adopted_keys = [key for server in servers for key in server.get("order", {}).get(list_name, ())]
    places = {key: place for place, key in enumerate(adopted_keys)}

    def place_and_name(entry: Entry) -> tuple[int, str]:
        return places.get(key_of(entry), -1), str(entry["name"])

    return sorted((entry for part in parts for entry in part[list_name]), key=place_and_name)


def _merge_functions(parts: Iterable[Catalog], list_name: ListName) -> dict[str, str]:
    """Return the folder of the function that serves each name of a list, sorted by name."""
    folders: dict[str, str] = {}
    unlisted_folders = []
    for part in parts:
        for key, folder in part["functions"].get(list_name, {}).items():
            if key == UNLISTED_KEY:
                unlisted_folders.append(folder)
                continue
            if key in folders:
                _refuse_duplicate(list_name, key, folders[key], folder)
            folders[key] = folder
    if len(unlisted_folders) == 1:  # with two functions, no rule would tell which one serves an unlisted name
        folders[UNLISTED_KEY] = unlisted_folders[0]
    return dict(sorted(folders.items()))


def _refuse_duplicate(list_name: ListName, key: str, folder: str, other_folder: str) -> NoReturn:
    if folder == other_folder:
        message = f"two {list_name} named {key!r}: names are unique"
    else:
        message = f"two {list_name} named {key!r}, in {folder} and in {other_folder}: names are unique"
    raise ValueError(message)


def _check_answer_tools(catalog: Catalog) -> None:
    """Refuse a tool that has the name of another tool's answer tool."""
    for tool in catalog.get("asks", ()):
        for suffix in ANSWER_TOOL_SUFFIXES:
            answer_tool = tool + suffix
            if answer_tool in catalog["functions"]["tools"]:
                message = (
                    f"rename the tool {answer_tool!r}: {tool!r} asks its user, and this is the name of its answer tool"
                )
                raise ValueError(message)


def key_of(entry: Entry) -> str:
    """Return the key of an entry, which requests contain: its URI template, its URI, or else its name."""
    return str(entry.get("uriTemplate") or entry.get("uri") or entry["name"])


def describe_server(instructions: str | None, server_info: object) -> dict[str, Any]:
    """Read what an author writes about a server.

    Raises:
        TypeError: `instructions` is no text, or `server_info` has a wrong member.
    """
    if not isinstance(instructions, str | None):
        message = "instructions is text"
        raise TypeError(message)
    description: dict[str, Any] = {}
    if instructions:
        description["instructions"] = instructions
    if server_info is not None:
        from mcp_functions.protocol import hints  # noqa: PLC0415 - most functions do not set it

        description["serverInfo"] = hints.read_server_info(server_info)
    return description


def server_info(catalog: Mapping[str, Any], default: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the `serverInfo` of results.

    It is the deployment's (`default`). If exactly one function or adopted server has a `serverInfo`, its members
    replace the deployment's.
    """
    infos = [server["serverInfo"] for server in catalog.get("servers", ()) if "serverInfo" in server]
    return {**default, **infos[0]} if len(infos) == 1 else default
