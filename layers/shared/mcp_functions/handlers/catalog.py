"""The catalog describes the tools, prompts and resources of a server as JSON.

    {
      "tools": [{"name": "book", "inputSchema": {…}}], "prompts": [], "resources": [], "resourceTemplates": [],
      "functions": {"tools": {"book": "booking"}, "prompts": {}, "resources": {}, "resourceTemplates": {}},
      "completions": false, "logging": false, "scopes": ["trips:write"], "asks": ["book"]
    }

The front door answers for the whole server, and reads this JSON from catalog.json. Every other function builds the
catalog of its own handlers: its tools, prompts and resources. `protocol.catalog_types` describes each member.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

from mcp_functions.settings import is_deployed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mcp_functions.handlers.base import Handler
    from mcp_functions.protocol.catalog_types import (
        Catalog,
        Hidden,
        ListName,
        Properties,
        PropertyOfTools,
        Server,
    )
    from mcp_functions.protocol.wire_types import Implementation, ListEntry

LISTS_BY_KIND: Mapping[str, ListName] = {
    "tool": "tools",
    "prompt": "prompts",
    "resource": "resources",
    "resource_template": "resourceTemplates",
}
LIST_NAMES = tuple(LISTS_BY_KIND.values())
UNLISTED_KEY = "*"  # the names that an adopted server serves, and does not list
# The members that list the tools with a property: those that ask, for example.
PROPERTIES_OF_TOOLS: tuple[PropertyOfTools, ...] = ("asks", "formless", "relays", "apps")
# The members that only an optional room reads, by the folder of the room.
MEMBERS_BY_ROOM = {"apps": PROPERTIES_OF_TOOLS, "tasks": ("tasks",), "skills": ("skills",)}
# A client that cannot show a question sends the answer to a second tool, the answer tool: `book-form` or `book-answer`.
ANSWER_TOOL_SUFFIXES = ("-form", "-answer")


def build(handlers: Iterable[Handler[..., Any]], folder: str = "") -> Catalog:
    """Describe the handlers of one function; `folder` is its folder."""
    return build_project({folder: handlers})


def build_project(functions: Mapping[str, Iterable[Handler[..., Any]]]) -> Catalog:
    """Describe the handlers of several functions, by the folder of each.

    Raises:
        ValueError: two handlers have the same name, or a tool has the name of another tool's answer tool.
    """
    served = [(folder, handler) for folder, handlers in functions.items() for handler in handlers]
    handlers = [handler for _folder, handler in served]
    servers: list[Server] = []
    for handler in handlers:  # every handler of a server has the same description
        if handler.server_description and handler.server_description not in servers:
            servers.append(handler.server_description)
    catalog = cast("Catalog", {list_name: _entries(handlers, list_name, servers) for list_name in LIST_NAMES})
    catalog["functions"] = {list_name: _folders(served, list_name) for list_name in LIST_NAMES}
    catalog["completions"] = any(handler.has_completers for handler in handlers)
    catalog["logging"] = any(handler.logs for handler in handlers)
    optional = {
        "servers": servers,
        "methods": _extension_methods(served),
        **_properties(served),
        "hidden": _hidden(handlers, servers),
    }
    catalog |= cast("Catalog", {member: value for member, value in optional.items() if value})
    _check_answer_tools(catalog)
    return catalog


def _entries(handlers: Iterable[Handler[..., Any]], list_name: ListName, servers: Iterable[Server]) -> list[ListEntry]:
    """Sort the entries of a list: first our own by name, then those of adopted servers as these order them.

    Servers "SHOULD return tools in a deterministic order" (server/tools): a client's cached prompt then stays valid.
    """
    entries = {handler.key: handler.describe() for handler in handlers if LISTS_BY_KIND[handler.kind] == list_name}
    entries.pop(UNLISTED_KEY, None)  # it is in no list
    ordered = [key for server in servers for key in server.get("order", {}).get(list_name, ())]
    # An author need not serve every handler of an adopted server.
    adopted = [entries.pop(key) for key in ordered if key in entries]
    own = sorted(entries.values(), key=itemgetter("name"))
    return own + adopted


def _folders(served: Iterable[tuple[str, Handler[..., Any]]], list_name: ListName) -> dict[str, str]:
    """Return the folder of the function that serves each name of a list, sorted by name."""
    folders: dict[str, list[str]] = {}
    for folder, handler in served:
        if LISTS_BY_KIND[handler.kind] == list_name:
            folders.setdefault(handler.key, []).append(folder)
    # If two adopted servers serve names that no list has, a request for such a name could go to either. It is refused.
    if len(folders.get(UNLISTED_KEY, ())) > 1:
        del folders[UNLISTED_KEY]
    for key, (first, *others) in folders.items():
        if others:
            place = "" if others[0] == first else f", in {first} and in {others[0]}"
            raise ValueError(f"two {list_name} named {key!r}{place}: names are unique")
    return {key: folders[key][0] for key in sorted(folders)}


def _extension_methods(served: Iterable[tuple[str, Handler[..., Any]]]) -> dict[str, str]:
    """Return the folder that serves each method of an extension. None serves a method that two servers have."""
    folders: dict[str, list[str]] = {}
    for folder, handler in served:
        for method in handler.extension_methods:
            folders.setdefault(method, []).append(folder)
    return {method: first for method, (first, *others) in sorted(folders.items()) if not others}


def _properties(served: Sequence[tuple[str, Handler[..., Any]]]) -> Properties:
    """List what has a property: the tools that may ask their user, for example."""
    handlers = [handler for _folder, handler in served]
    asking = [handler for handler in handlers if handler.has_answer_tool]
    return {
        "scopes": sorted({scope for handler in handlers for scope in handler.scopes}),
        "tasks": sorted({folder for folder, handler in served if handler.task}),
        "asks": sorted(handler.name for handler in asking),
        "formless": sorted(handler.name for handler in asking if not handler.may_show_form),
        "relays": sorted(handler.name for handler in handlers if handler.ask_in_words),
        "apps": sorted(handler.name for handler in handlers if handler.is_app_only),
    }


def _hidden(handlers: Iterable[Handler[..., Any]], servers: Iterable[Server]) -> Hidden:
    """Return the scopes of what only callers with these scopes see, by list and key; {} if nothing is hidden."""
    hidden: Hidden = {}
    for handler in handlers:
        if handler.hide_without_scopes:
            hidden.setdefault(LISTS_BY_KIND[handler.kind], {})[handler.key] = sorted(handler.scopes)
    if not hidden:
        return {}
    for index, server in enumerate(servers):
        of_server = [handler for handler in handlers if handler.server_description == server]
        if all(handler.hide_without_scopes for handler in of_server):
            alternatives = sorted({tuple(sorted(handler.scopes)) for handler in of_server})
            hidden.setdefault("servers", {})[str(index)] = [list(needed) for needed in alternatives]
    return hidden


def _check_answer_tools(catalog: Catalog) -> None:
    """Refuse a tool that has the name of another tool's answer tool."""
    for tool in catalog.get("asks", ()):
        for suffix in ANSWER_TOOL_SUFFIXES:
            name = tool + suffix
            if name in catalog["functions"]["tools"]:
                raise ValueError(
                    f"rename the tool {name!r}: {tool!r} asks its user, and this is the name of its answer tool"
                )


def deployed_part(catalog: Catalog) -> Catalog:
    """Return a catalog without the features whose folders were deleted from the layer."""
    missing = {member for room, members in MEMBERS_BY_ROOM.items() if not is_deployed(room) for member in members}
    kept = {member: value for member, value in catalog.items() if member not in missing}
    return cast("Catalog", kept) if missing else catalog


def key_of(entry: ListEntry) -> str:
    """Return the key of an entry, which requests contain: its URI template, its URI, or else its name."""
    return str(entry.get("uriTemplate") or entry.get("uri") or entry["name"])


def describe_server(instructions: str | None, server_info: object) -> Server:
    """Read what an author writes about a server; TypeError for instructions that are no text, or for a wrong member."""
    if not isinstance(instructions, str | None):
        raise TypeError("instructions is text")
    description: Server = {}
    if instructions:
        description["instructions"] = instructions
    if server_info is not None:
        from mcp_functions.protocol import hints

        description["serverInfo"] = hints.read_server_info(server_info)
    return description


def server_info(catalog: Catalog, default: Implementation) -> Implementation:
    """Return the `serverInfo` of results.

    It is the deployment's (`default`). If exactly one function or adopted server has a `serverInfo`, its members
    replace the deployment's. Those of a front door replace both.
    """
    infos = [server["serverInfo"] for server in catalog.get("servers", ()) if "serverInfo" in server]
    of_front_door = catalog.get("front_door", {}).get("serverInfo", {})
    return {**default, **(infos[0] if len(infos) == 1 else {}), **of_front_door}
