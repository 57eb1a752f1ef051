"""The catalog describes the tools, prompts and resources of a server as JSON.

    {
      "tools": [{"name": "book", "inputSchema": {…}}], "prompts": [], "resources": [], "resourceTemplates": [],
      "functions": {"tools": {"book": "booking"}, "prompts": {}, "resources": {}, "resourceTemplates": {}},
      "completions": false, "logging": false, "scopes": ["trips:write"], "asks": ["book"]
    }

The front door is the endpoint of the whole server, and reads this JSON from catalog.json. Every other function builds
the catalog of its own handlers: its tools, prompts and resources. The members of the JSON:

    tools, prompts, …       the entries of each list, as clients get them
    functions               for each list, the names or URIs with the folder of the Lambda function that serves them. An
                            adopted server may also serve names that no list has; their key is "*" (UNLISTED_KEY)
    completions, logging    whether any handler completes arguments, or sends log messages
    servers                 the `instructions` and `serverInfo` of authors. A server of another library (`adopt`) also
                            has `extensions`, and `order`: for each list, its names or URIs in the order of that server
    methods                 the methods of extensions of adopted servers ("skills/list"), with the folder of each
    scopes                  the OAuth scopes that handlers require
    tasks                   the functions whose calls may become tasks
    asks                    the tools that may ask their user
    formless                those of them whose questions are not shown as a form of an app (MCP Apps)
    relays                  those of them that let the model pass on the user's answers
    apps                    the tools that only an app may call
    hidden                  for each list, the names or URIs that only callers with these scopes see (`visibility`);
                            and, by their index, the servers whose handlers are all hidden, with the scopes of each
    skills                  the URIs of skills with a digest of each (`skills`). Their files are in skills.json

`servers` and each member after it is left out if it would be empty.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

from mcp_functions.settings import is_deployed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mcp_functions.handlers.base import Handler
    from mcp_functions.protocol.catalog_types import Catalog, Hidden, ListName, Properties, PropertyOfTools, Server
    from mcp_functions.protocol.wire_types import Implementation, ListEntry, ServerInfo

LISTS_BY_KIND: Mapping[str, ListName] = {
    "tool": "tools",
    "prompt": "prompts",
    "resource": "resources",
    "resource_template": "resourceTemplates",
}
LIST_NAMES: tuple[ListName, ...] = ("tools", "prompts", "resources", "resourceTemplates")
UNLISTED_KEY = "*"  # see "functions" above
# The members that list what has a property: the tools that ask, for example.
PROPERTIES_OF_TOOLS: tuple[PropertyOfTools, ...] = ("asks", "formless", "relays", "apps")
PROPERTIES = ("scopes", "tasks", *PROPERTIES_OF_TOOLS)
# Those of them that an optional room reads, by the folder of the room.
PROPERTIES_BY_ROOM = {"apps": PROPERTIES_OF_TOOLS, "tasks": ("tasks",), "skills": ("skills",)}
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
    catalog: Catalog = {
        "tools": _entries(handlers, "tools", servers),
        "prompts": _entries(handlers, "prompts", servers),
        "resources": _entries(handlers, "resources", servers),
        "resourceTemplates": _entries(handlers, "resourceTemplates", servers),
        "functions": {
            "tools": _folders(served, "tools"),
            "prompts": _folders(served, "prompts"),
            "resources": _folders(served, "resources"),
            "resourceTemplates": _folders(served, "resourceTemplates"),
        },
        "completions": any(handler.has_completers for handler in handlers),
        "logging": any(handler.logs for handler in handlers),
    }
    if servers:
        catalog["servers"] = servers
    methods = _extension_methods(served)
    if methods:
        catalog["methods"] = methods
    catalog |= cast("Catalog", _properties(served))
    hidden = _hidden(handlers, servers)
    if hidden:
        catalog["hidden"] = hidden
    _check_answer_tools(catalog)
    return catalog


def _entries(handlers: Iterable[Handler[..., Any]], list_name: ListName, servers: Iterable[Server]) -> list[ListEntry]:
    """Sort the entries of a list: first our own by name, then those of adopted servers as these order them.

    Servers "SHOULD return tools in a deterministic order" (server/tools): a client's cached prompt then stays valid.
    """
    entries = {handler.key: handler.describe() for handler in handlers if LISTS_BY_KIND[handler.kind] == list_name}
    entries.pop(UNLISTED_KEY, None)  # it is in no list
    adopted = []
    for server in servers:
        for key in server.get("order", {}).get(list_name, ()):
            entry = entries.pop(key, None)
            if entry:  # an author need not serve every handler of an adopted server
                adopted.append(entry)
    # the entries that no adopted server orders
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
            message = f"two {list_name} named {key!r}{place}: names are unique"
            raise ValueError(message)
    return {key: folders[key][0] for key in sorted(folders)}


def _extension_methods(served: Iterable[tuple[str, Handler[..., Any]]]) -> dict[str, str]:
    """Return the folder that serves each method of an extension. None serves a method that two servers have."""
    folders: dict[str, list[str]] = {}
    for folder, handler in served:
        for method in handler.extension_methods:
            folders.setdefault(method, []).append(folder)
    return {method: first for method, (first, *others) in sorted(folders.items()) if not others}


def _properties(served: Iterable[tuple[str, Handler[..., Any]]]) -> Properties:
    """Write the members of PROPERTIES: for each, the names of what has the property. An empty member is left out."""
    found: dict[str, set[str]] = {member: set() for member in PROPERTIES}
    for folder, handler in served:
        found["scopes"].update(handler.scopes)
        if handler.task:
            found["tasks"].add(folder)
        if handler.has_answer_tool:  # it may ask its user
            found["asks"].add(handler.name)
            if not handler.may_show_form:  # no client gets its questions as a form of an app
                found["formless"].add(handler.name)
        if handler.ask_in_words:  # the model may pass on the user's answers
            found["relays"].add(handler.name)
        if handler.is_app_only:
            found["apps"].add(handler.name)
    return cast("Properties", {member: sorted(names) for member, names in found.items() if names})


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
                message = f"rename the tool {name!r}: {tool!r} asks its user, and this is the name of its answer tool"
                raise ValueError(message)


def deployed_part(catalog: Catalog) -> Catalog:
    """Return a catalog without the features whose folders were deleted from the layer."""
    missing = {member for room, members in PROPERTIES_BY_ROOM.items() if not is_deployed(room) for member in members}
    kept = {member: value for member, value in catalog.items() if member not in missing}
    return cast("Catalog", kept) if missing else catalog


def key_of(entry: ListEntry) -> str:
    """Return the key of an entry, which requests contain: its URI template, its URI, or else its name."""
    return str(entry.get("uriTemplate") or entry.get("uri") or entry["name"])


def describe_server(instructions: str | None, server_info: object) -> Server:
    """Read what an author writes about a server.

    Raises:
        TypeError: `instructions` is no text, or `server_info` has a wrong member.
    """
    if not isinstance(instructions, str | None):
        message = "instructions is text"
        raise TypeError(message)
    description: Server = {}
    if instructions:
        description["instructions"] = instructions
    if server_info is not None:
        # most functions do not set it
        from mcp_functions.protocol import hints

        description["serverInfo"] = cast("ServerInfo", hints.read_server_info(server_info))
    return description


def server_info(catalog: Catalog, default: Implementation) -> Implementation:
    """Return the `serverInfo` of results.

    It is the deployment's (`default`). If exactly one function or adopted server has a `serverInfo`, its members
    replace the deployment's. Those of a front door, in the member "endpoint", replace both.
    """
    infos = [server["serverInfo"] for server in catalog.get("servers", ()) if "serverInfo" in server]
    of_endpoint = catalog.get("endpoint", {}).get("serverInfo", {})
    return {**default, **(infos[0] if len(infos) == 1 else {}), **of_endpoint}
