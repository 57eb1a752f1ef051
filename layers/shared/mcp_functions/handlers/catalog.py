"""The catalog describes the tools, prompts and resources of a server as JSON.

    {
      "tools": [{"name": "book", "inputSchema": {…}}], "prompts": [], "resources": [], "resourceTemplates": [],
      "functions": {"tools": {"book": "booking"}, "prompts": {}, "resources": {}, "resourceTemplates": {}},
      "completions": false, "logging": false, "scopes": ["trips:write"], "asks": ["book"]
    }

The front door is the endpoint of the whole server, and reads this JSON from catalog.json. Every other function builds
the catalog of its own handlers: its tools, prompts and resources. The members of the JSON:

    tools, prompts, …       the entries of each list, as clients get them
    functions               for each list, the names or URIs with the folder of the Lambda function that serves them
    completions, logging    whether any handler completes arguments, or sends log messages
    servers                 the `instructions` and `serverInfo` of authors. A server of another library (`adopt`) also
                            has `extensions`, and `order`: for each list, its names or URIs in the order of that server
    scopes                  the OAuth scopes that handlers require
    tasks                   the functions whose calls may become tasks
    asks                    the tools that may ask their user
    formless                those of them whose questions are not shown as a form of an app (MCP Apps)
    relays                  those of them that let the model pass on the user's answers
    apps                    the tools that only an app may call

`servers` and each member after it is left out if it would be empty.
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
# In "functions", this key is for names that are in no list. An adopted server may serve some.
UNLISTED_KEY = "*"
# A client that cannot show a question sends the answer to a second tool, the answer tool: `book-form` or `book-answer`.
ANSWER_TOOL_SUFFIXES = ("-form", "-answer")


def build(handlers: Iterable[Handler[..., Any]], folder: str = "") -> dict[str, Any]:
    """Describe the handlers of one function; `folder` is its folder."""
    return build_project({folder: handlers})


def build_project(functions: Mapping[str, Iterable[Handler[..., Any]]]) -> dict[str, Any]:
    """Describe the handlers of several functions, by the folder of each.

    Raises:
        ValueError: two handlers have the same name, or a tool has the name of another tool's answer tool.
    """
    served = [(folder, handler) for folder, handlers in functions.items() for handler in handlers]
    handlers = [handler for _folder, handler in served]
    asking = [handler for handler in handlers if handler.has_answer_tool]
    servers: list[Mapping[str, Any]] = []
    for handler in handlers:  # every handler of a server has the same description
        if handler.server_description and handler.server_description not in servers:
            servers.append(handler.server_description)
    optional = {
        "servers": servers,
        "scopes": sorted({scope for handler in handlers for scope in handler.scopes}),
        "tasks": sorted({folder for folder, handler in served if handler.task}),
        "asks": sorted(handler.name for handler in asking),
        "formless": sorted(handler.name for handler in asking if not handler.may_show_form),
        "relays": sorted(handler.name for handler in handlers if handler.ask_in_words),
        "apps": sorted(handler.name for handler in handlers if handler.is_app_only),
    }
    catalog = {
        **{list_name: _entries(handlers, list_name, servers) for list_name in LIST_NAMES},
        "functions": {list_name: _folders(served, list_name) for list_name in LIST_NAMES},
        "completions": any(handler.has_completers for handler in handlers),
        "logging": any(handler.logs for handler in handlers),
        **{member: names for member, names in optional.items() if names},
    }
    _check_answer_tools(catalog)
    return catalog


def _entries(
    handlers: Iterable[Handler[..., Any]], list_name: str, servers: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Sort the entries of a list: first our own by name, then those of adopted servers as these order them.

    Servers "SHOULD return tools in a deterministic order" (server/tools): a client's cached prompt then stays valid.
    """
    adopted_keys = [key for server in servers for key in server.get("order", {}).get(list_name, ())]
    places = {key: place for place, key in enumerate(adopted_keys)}

    def place_and_name(entry: dict[str, Any]) -> tuple[int, str]:
        return places.get(key_of(entry), -1), str(entry["name"])

    entries = [handler.describe() for handler in handlers if LISTS_BY_KIND[handler.kind] == list_name]
    # The handler of an adopted server for UNLISTED_KEY has no entry.
    return sorted((entry for entry in entries if entry), key=place_and_name)


def _folders(served: Iterable[tuple[str, Handler[..., Any]]], list_name: str) -> dict[str, str]:
    """Return the folder of the function that serves each name of a list, sorted by name."""
    folders: dict[str, str] = {}
    unlisted_folders = []
    for folder, handler in served:
        if LISTS_BY_KIND[handler.kind] != list_name:
            continue
        if handler.key == UNLISTED_KEY:
            unlisted_folders.append(folder)
            continue
        if handler.key in folders:
            other = folders[handler.key]
            place = "" if folder == other else f", in {other} and in {folder}"
            message = f"two {list_name} named {handler.key!r}{place}: names are unique"
            raise ValueError(message)
        folders[handler.key] = folder
    if len(unlisted_folders) == 1:  # with two functions, no rule would tell which one serves an unlisted name
        folders[UNLISTED_KEY] = unlisted_folders[0]
    return dict(sorted(folders.items()))


def _check_answer_tools(catalog: Mapping[str, Any]) -> None:
    """Refuse a tool that has the name of another tool's answer tool."""
    for tool in catalog.get("asks", ()):
        for suffix in ANSWER_TOOL_SUFFIXES:
            answer_tool = tool + suffix
            if answer_tool in catalog["functions"]["tools"]:
                message = (
                    f"rename the tool {answer_tool!r}: {tool!r} asks its user, and this is the name of its answer tool"
                )
                raise ValueError(message)


def key_of(entry: Mapping[str, Any]) -> str:
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
