"""The catalog describes the tools, prompts and resources of a server as JSON.

    {
      "tools": [{"name": "book", "inputSchema": …}],       # the entries of `tools/list`
      "prompts": […],                                      # and of the other lists, "resources", "resourceTemplates"
      "functions": {"tools": {"book": "booking"}, …},      # the folder of the Lambda function, for each name or URI
      "completions": false, "logging": false,              # whether any handler has the capability
      "servers": [{"instructions": "…"}],                  # what the functions say about the server
      "scopes": ["work:write"], …                          # sets of names: see NAME_SETS
    }

A handler is a tool, a prompt or a resource. `lookup` finds the handler that a request names, and `lists` answers list
requests. The front door, which is the endpoint of the whole server, reads catalog.json. Every other function builds the
catalog of its own handlers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias

    from mcp_functions.handlers.base import Handler

    Catalog: TypeAlias = Mapping[str, Any]

LISTS_BY_KIND = {
    "tool": "tools",
    "prompt": "prompts",
    "resource": "resources",
    "resource_template": "resourceTemplates",
}
LIST_NAMES = tuple(LISTS_BY_KIND.values())
FEATURES = ("completions", "logging")
# The sets of names. A catalog leaves out a set without names.
NAME_SETS = (
    "scopes",  # the OAuth scopes that handlers require
    "tasks",  # the functions whose calls may become tasks
    "asks",  # the tools that may ask their user
    "formless",  # those of them whose questions are not shown as a form of an app (MCP Apps)
    "relays",  # those of them that let the model pass on the user's answers
    "apps",  # the tools that only an app may call
)


def build(handlers: Iterable[Handler[..., Any]], folder: str = "") -> dict[str, Any]:
    """Describe the handlers of one function; `folder` is the function's."""
    return merge(_describe(handler, folder) for handler in handlers)


def _describe(handler: Handler[..., Any], folder: str) -> dict[str, Any]:
    """Write the catalog of one handler."""
    entry = handler.describe()
    list_name = LISTS_BY_KIND[handler.kind]
    return {
        list_name: [entry] if entry else [],
        "functions": {list_name: {handler.key: folder}},
        "completions": handler.has_completers,
        "logging": handler.logs,
        "servers": [handler.server_description] if handler.server_description else [],
        "scopes": handler.scopes,
        "tasks": [folder] if handler.task else [],
        **{name_set: [handler.name] for name_set in handler.name_sets()},
    }


def merge(catalogs: Iterable[Catalog]) -> dict[str, Any]:
    """Combine several catalogs into one.

    Raises:
        ValueError: two handlers have the same name, or a tool has the name of another tool's companion.
    """
    parts = list(catalogs)
    servers = []
    for server in _join(parts, "servers"):
        if server not in servers:
            servers.append(server)
    merged: dict[str, Any] = {name: _sort(_join(parts, name), name, servers) for name in LIST_NAMES}
    merged["functions"] = {name: _merge_functions(name, parts) for name in LIST_NAMES}
    merged |= {feature: any(part[feature] for part in parts) for feature in FEATURES}
    if servers:
        merged["servers"] = servers
    for name_set in NAME_SETS:
        names = set(_join(parts, name_set))
        if names:
            merged[name_set] = sorted(names)
    _check_companions(merged)
    return merged


def _join(parts: Iterable[Catalog], member: str) -> list[Any]:
    """Join the lists that catalogs have under one member; a catalog may leave it out."""
    return [item for part in parts for item in part.get(member, ())]


# In "functions", this key is for names that are in no list. A server of another library (`adopt`) may serve some.
UNLISTED_KEY = "*"


def _merge_functions(list_name: str, parts: Iterable[Catalog]) -> dict[str, str]:
    """Return the folder of each name of a list. A name in two functions is a ValueError that names both."""
    folders: dict[str, str] = {}
    folders_of_unlisted = []
    for part in parts:
        for key, folder in part["functions"].get(list_name, {}).items():
            if key == UNLISTED_KEY:
                folders_of_unlisted.append(folder)
            elif key in folders:
                where = f", in {folders[key]} and in {folder}" if folders[key] != folder else ""
                message = f"two {list_name} named {key!r}{where}: names are unique"
                raise ValueError(message)
            else:
                folders[key] = folder
    if len(folders_of_unlisted) == 1:  # with two functions, no rule would tell which one serves an unlisted name
        folders[UNLISTED_KEY] = folders_of_unlisted[0]
    return dict(sorted(folders.items()))


def _sort(entries: list[dict[str, Any]], list_name: str, servers: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Sort a list: first our own entries by name, then the entries of adopted servers as these order them.

    Servers "SHOULD return tools in a deterministic order" (server/tools): a client's cached prompt then stays valid.
    """
    adopted_keys = [key for server in servers for key in server.get("order", {}).get(list_name, ())]
    places = {key: place for place, key in enumerate(adopted_keys)}

    def place_and_name(entry: Mapping[str, Any]) -> tuple[int, str]:
        return places.get(key_of(entry), -1), str(entry["name"])

    return sorted(entries, key=place_and_name)


# A client that cannot show a question sends the answer to a second tool, the companion: `book-form` or `book-answer`.
COMPANION_SUFFIXES = ("-form", "-answer")


def _check_companions(catalog: Catalog) -> None:
    """Refuse a tool whose name another tool's companion needs, with a ValueError."""
    for tool in catalog.get("asks", ()):
        for suffix in COMPANION_SUFFIXES:
            if tool + suffix in catalog["functions"]["tools"]:
                message = f"a tool named {tool + suffix!r}: {tool} asks, so this is the name of its companion"
                raise ValueError(message)


def key_of(entry: Mapping[str, Any]) -> str:
    """Return what requests name an entry of a list by: its URI template, its URI or its name."""
    return str(entry.get("uriTemplate") or entry.get("uri") or entry["name"])


def read_about(instructions: str | None, server_info: object) -> dict[str, Any]:
    """Read what an author writes about the server, as the catalog keeps it.

    Raises:
        TypeError: `instructions` is no text, or `server_info` has a wrong member.
    """
    if not isinstance(instructions, str | None):
        message = "instructions is text"
        raise TypeError(message)
    about: dict[str, Any] = {"instructions": instructions} if instructions else {}
    if server_info is not None:
        from mcp_functions.protocol import hints  # noqa: PLC0415 - most functions do not set it

        about["serverInfo"] = hints.read_server_info(server_info)
    return about


def server_info(catalog: Catalog, default: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the `serverInfo` of results.

    It is the deployment's (`default`). If exactly one function or adopted server has a `serverInfo`, its members
    replace the deployment's.
    """
    infos = [server["serverInfo"] for server in catalog.get("servers", ()) if "serverInfo" in server]
    return {**default, **infos[0]} if len(infos) == 1 else default
