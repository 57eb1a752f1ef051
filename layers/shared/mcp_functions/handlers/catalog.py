"""The catalog: a description of handlers as plain data, which becomes catalog.json.

    {
      "tools": [{"name": "book", "inputSchema": …}],       # entries, as the lists of the specification have them;
                                                           # likewise "prompts", "resources" and "resourceTemplates"
      "functions": {"tools": {"book": "booking"}, …},      # for each list: name or URI -> folder of the function
      "completions": false, "logging": false,              # whether any handler has these capabilities
      "asks": ["book"], …                                  # sets of names (`NAME_SETS`), left out where empty
      "servers": [{"instructions": …, "order": …}]         # what functions, and adopted servers, say of themselves
    }

The front door reads the catalog of all functions from catalog.json. A function builds a catalog of its own handlers.
`lists` answers the lists from it, and `lookup` finds the handler that a request names. An adopted server is one of
another library (`adopt`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mcp_functions.handlers.base import Handler

# A companion is a second tool, `<tool>-form` or `<tool>-answer`, that takes the answers for a tool that asks.
COMPANIONS = ("-form", "-answer")
LISTS_BY_KIND = {
    "tool": "tools",
    "prompt": "prompts",
    "resource": "resources",
    "resource_template": "resourceTemplates",
}
LIST_NAMES = tuple(LISTS_BY_KIND.values())
CAPABILITIES = {"tools": "tools", "prompts": "prompts", "resources": "resources", "resourceTemplates": "resources"}
FEATURES = ("completions", "logging")
OTHERS = "*"  # the key for names that a function serves and does not list, as some adopted servers do
# scopes     every scope that a handler needs
# tasks      the functions that may make a task of a call, and that keep their tasks
# asks       the tools that may ask their user
# relays     the tools that ask, and whose answers the model may relay
# apps       the tools that only apps may call
# formless   the tools that ask, and for which a host shows no form
NAME_SETS = ("scopes", "tasks", "asks", "relays", "apps", "formless")


def build(handlers: Iterable[Handler[..., Any]], function: str = "") -> dict[str, Any]:
    """Describe the handlers of one function; `function` is the name of its folder."""
    return merge(_describe(handler, function) for handler in handlers)


def merge(catalogs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Combine several catalogs into one. A name that two of them contain is a ValueError."""
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
    others = []  # the functions that serve names which are not listed
    for part in parts:
        for key, function in part["functions"].get(list_name, {}).items():
            if key == OTHERS:
                others.append(function)
            elif key in functions:
                first = functions[key]
                where = f", in {first} and in {function}" if first != function else ""
                message = f"two {list_name} named {key!r}{where}: names are unique"
                raise ValueError(message)
            else:
                functions[key] = function
    if len(others) == 1:  # with two of them, nothing would say which one serves an unlisted name
        functions[OTHERS] = others[0]
    return dict(sorted(functions.items()))


def _sort(entries: list[dict[str, Any]], list_name: str, servers: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Sort a list: by name, and behind these the entries of adopted servers, in their own order.

    Servers "SHOULD return tools in a deterministic order" (server/tools): a client's cached prompt then stays valid.
    """
    adopted = [key for server in servers for key in server.get("order", {}).get(list_name, ())]
    places = {key: place for place, key in enumerate(adopted)}

    def place_and_name(entry: Mapping[str, Any]) -> tuple[int, str]:
        return places.get(key_of(entry), -1), str(entry["name"])  # -1 is before all entries of adopted servers

    return sorted(entries, key=place_and_name)


def _describe(handler: Handler[..., Any], function: str) -> dict[str, Any]:
    """Write the catalog of one handler."""
    entry = handler.describe()
    list_name = LISTS_BY_KIND[handler.kind]
    # A companion or a form takes answers to this toolkit's questions. An adopted server writes its questions itself.
    names = [handler.key] if handler.kind == "tool" and not handler.is_adopted else []
    return {
        list_name: [entry] if entry else [],
        "functions": {list_name: {handler.key: function}},
        "completions": handler.has_completers,
        "logging": handler.logs,
        "scopes": handler.scopes,
        "tasks": [function] if handler.task else [],
        "servers": [handler.server_description] if handler.server_description else [],
        "asks": names if handler.needs_state else [],
        "relays": names if handler.ask_in_words else [],
        "formless": names if handler.needs_state and not handler.may_show_form else [],
        "apps": names if handler.is_app_only else [],
    }


def key_of(entry: Mapping[str, Any]) -> str:
    """Return what requests name an entry of a list by: its URI template, its URI or its name."""
    return str(entry.get("uriTemplate") or entry.get("uri") or entry["name"])


def read_about(instructions: str | None, server_info: object) -> dict[str, Any]:
    """Read what a server says of itself, as the catalog keeps it.

    Raises:
        TypeError: `instructions` is no text, or `server_info` has a wrong member.
    """
    if not isinstance(instructions, str | None):
        message = "instructions is text"
        raise TypeError(message)
    about: dict[str, Any] = {"instructions": instructions} if instructions else {}
    if server_info is not None:
        from mcp_functions.protocol import hints  # noqa: PLC0415 - most functions leave it to the endpoint

        about["serverInfo"] = hints.read_server_info(server_info)
    return about


def server_info(catalog: Mapping[str, Any], default: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the deployment's `serverInfo`; if just one server in the catalog has its own, its members come first."""
    infos = [server["serverInfo"] for server in catalog.get("servers", ()) if "serverInfo" in server]
    return {**default, **infos[0]} if len(infos) == 1 else default


def _check_companions(catalog: Mapping[str, Any]) -> None:
    """Refuse a tool whose name another tool's companion needs, with a ValueError."""
    tools: Mapping[str, str] = catalog["functions"]["tools"]
    for tool in catalog.get("asks", ()):
        for suffix in COMPANIONS:
            if f"{tool}{suffix}" in tools:
                message = f"a tool named {tool + suffix!r}: {tool} asks, so this is the name of its companion"
                raise ValueError(message)
