"""The catalog describes the tools, prompts and resources of a server as JSON.

    {
      "tools": [{"name": "book", "inputSchema": …}],       # the entries of `tools/list`
      "prompts": […],                                      # and of the other lists, "resources", "resourceTemplates"
      "functions": {"tools": {"book": "booking"}, …},      # list -> name or URI -> folder of the Lambda function
      "completions": false, "logging": false,              # whether any handler has the capability
      "servers": [{"instructions": "…"}],                  # the descriptions that functions give of the server

      "scopes": ["work:write"],                            # the OAuth scopes that handlers require
      "tasks": ["booking"],                                # the functions whose calls may become tasks
      "asks": ["book"],                                    # the tools that may ask their user
      "relays": ["book"],                                  # the tools that ask, and whose answers the model may send
      "apps": ["cart"],                                    # the tools that only an app (MCP Apps) may call
      "formless": ["book"]                                 # the tools that ask, but whose questions no app may show
    }

The front door, which is the endpoint of the whole server, reads catalog.json. A function builds a catalog of its own
handlers. `lists` answers list requests from it, and `lookup` finds the handler that a request names.

A handler is a tool, a prompt or a resource. An adopted handler belongs to a server of another library (`adopt`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mcp_functions.handlers.base import Handler

LISTS_BY_KIND = {
    "tool": "tools",
    "prompt": "prompts",
    "resource": "resources",
    "resource_template": "resourceTemplates",
}
LIST_NAMES = tuple(LISTS_BY_KIND.values())
CAPABILITIES = {"tools": "tools", "prompts": "prompts", "resources": "resources", "resourceTemplates": "resources"}
FEATURES = ("completions", "logging")
NAME_SETS = ("scopes", "tasks", "asks", "relays", "apps", "formless")  # sorted lists; an empty one is left out

# In "functions", this key is for all names that are in no list: an adopted server may serve some.
UNLISTED_KEY = "*"
# A client that cannot show a question sends the answer to a second tool, the companion: `book-form` or `book-answer`.
COMPANION_SUFFIXES = ("-form", "-answer")


def build(handlers: Iterable[Handler[..., Any]], function: str = "") -> dict[str, Any]:
    """Describe the handlers of one function; `function` is the name of its folder."""
    return merge(_describe(handler, function) for handler in handlers)


def _describe(handler: Handler[..., Any], function: str) -> dict[str, Any]:
    """Write the catalog of one handler."""
    entry = handler.describe()
    list_name = LISTS_BY_KIND[handler.kind]
    described = {
        list_name: [entry] if entry else [],
        "functions": {list_name: {handler.key: function}},
        "completions": handler.has_completers,
        "logging": handler.logs,
        "servers": [handler.server_description] if handler.server_description else [],
        "scopes": handler.scopes,
        "tasks": [function] if handler.task else [],
    }
    if handler.kind == "tool" and not handler.is_adopted:  # an adopted server asks its user itself
        names = [handler.name]
        described["asks"] = names if handler.needs_state else []
        described["relays"] = names if handler.ask_in_words else []
        described["apps"] = names if handler.is_app_only else []
        described["formless"] = names if handler.needs_state and not handler.may_show_form else []
    return described


def merge(catalogs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Combine several catalogs into one. A name that two of them contain, or a companion has, is a ValueError."""
    parts = list(catalogs)
    servers: list[Mapping[str, Any]] = []
    for part in parts:
        servers += [server for server in part.get("servers", ()) if server not in servers]
    merged: dict[str, Any] = {}
    for list_name in LIST_NAMES:
        entries = [entry for part in parts for entry in part.get(list_name, ())]
        merged[list_name] = _sort(entries, list_name, servers)
    merged["functions"] = {list_name: _merge_functions(list_name, parts) for list_name in LIST_NAMES}
    for feature in FEATURES:
        merged[feature] = any(part[feature] for part in parts)
    if servers:
        merged["servers"] = servers
    for name_set in NAME_SETS:
        names = {name for part in parts for name in part.get(name_set, ())}
        if names:
            merged[name_set] = sorted(names)
    _check_companions(merged)
    return merged


def _merge_functions(list_name: str, parts: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the function of each name of a list. A name in two functions is a ValueError that names both."""
    functions: dict[str, str] = {}
    of_unlisted = []  # the functions that serve names which are in no list
    for part in parts:
        for key, function in part["functions"].get(list_name, {}).items():
            if key == UNLISTED_KEY:
                of_unlisted.append(function)
            elif key in functions:
                first = functions[key]
                where = f", in {first} and in {function}" if first != function else ""
                message = f"two {list_name} named {key!r}{where}: names are unique"
                raise ValueError(message)
            else:
                functions[key] = function
    if len(of_unlisted) == 1:  # with two functions, no rule would tell which one serves an unlisted name
        functions[UNLISTED_KEY] = of_unlisted[0]
    return dict(sorted(functions.items()))


def _sort(entries: list[dict[str, Any]], list_name: str, servers: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Sort a list: first our own entries by name, then the entries of adopted servers as these order them.

    Servers "SHOULD return tools in a deterministic order" (server/tools): a client's cached prompt then stays valid.
    """
    adopted_keys = [key for server in servers for key in server.get("order", {}).get(list_name, ())]
    places = {key: place for place, key in enumerate(adopted_keys)}
    own = [entry for entry in entries if key_of(entry) not in places]
    adopted = [entry for entry in entries if key_of(entry) in places]
    own.sort(key=lambda entry: str(entry["name"]))
    adopted.sort(key=lambda entry: places[key_of(entry)])
    return own + adopted


def _check_companions(catalog: Mapping[str, Any]) -> None:
    """Refuse a tool whose name another tool's companion needs, with a ValueError."""
    tools: Mapping[str, str] = catalog["functions"]["tools"]
    for tool in catalog.get("asks", ()):
        for suffix in COMPANION_SUFFIXES:
            if f"{tool}{suffix}" in tools:
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


def server_info(catalog: Mapping[str, Any], default: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the `serverInfo` of results.

    It is the deployment's (`default`). If exactly one function or adopted server has a `serverInfo`, its members
    replace the deployment's.
    """
    infos = [server["serverInfo"] for server in catalog.get("servers", ()) if "serverInfo" in server]
    return {**default, **infos[0]} if len(infos) == 1 else default
