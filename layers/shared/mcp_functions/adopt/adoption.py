"""`adopt`: an unchanged server, written with `mcp` or `fastmcp`, becomes handlers for `serve`.

The lists of the server are read once, when the module loads. Each entry becomes a handler. One more handler of each
kind serves names that the lists leave out.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from mcp_functions.adopt import options
from mcp_functions.adopt.handlers import AdoptedPrompt, AdoptedResource, AdoptedTemplate, AdoptedTool
from mcp_functions.adopt.scopes import scopes_of_all
from mcp_functions.adopt.server import AdoptedServer
from mcp_functions.handlers.base import to_seconds
from mcp_functions.observability.lines import log
from mcp_functions.protocol.constants import EXTENSION_TASKS, LIST_METHODS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from mcp_functions.adopt.handlers import AdoptedHandler
    from mcp_functions.protocol.catalog_types import ListName, Server
    from mcp_functions.protocol.wire_types import ListEntry, ServerInfo

KINDS: dict[str, type[AdoptedHandler]] = {
    "tools": AdoptedTool,
    "prompts": AdoptedPrompt,
    "resources": AdoptedResource,
    "resourceTemplates": AdoptedTemplate,
}
UNLISTED_ENTRY: ListEntry = {}  # the entry of the handler for names that a list leaves out
MAX_PAGES = 1000  # pages of one list; a server whose cursors never end gets an error


def adopt(
    server: object,
    *,
    replay: Sequence[str] = (),
    answer_within: int | timedelta = 600,
    max_sheds: int = 2,
    hide_without_scopes: bool = False,
) -> tuple[AdoptedHandler, ...]:
    """Make handlers of a server that was written with `mcp` or `fastmcp`: `handler = serve(*adopt(server))`.

    Args:
        server: an `MCPServer`, a low-level `Server` or a `FastMCP`, unchanged. Its lists are read now.
        replay: names of tools and prompts, or URIs of resources, that may ask in the middle of their work
            (`await ctx.elicit(…)`). Each runs again from its first line in every round, so what must happen once
            belongs into a `step`. A handler that asks and is not named here ends with an error.
        answer_within: a timedelta or seconds for one answer.
        max_sheds: rounds in a row that may end because their time is up, and not with a question.
        hide_without_scopes: if true, callers see only what they hold the scopes of (`auth=require_scopes(…)`), as in
            the lists of the original. Without it they see the rest too, and a call says which scopes it needs.

    Raises:
        TypeError: `server` is none of the three kinds, or `replay` is not a list of names.
        ValueError: `replay` names nothing that the server lists, the pages of a list never end, or an option of the
            server cannot be carried over (`options`). The log names the options that only change.
    """
    if isinstance(replay, str):
        message = f"replay is a list of names: replay=[{replay!r}]"
        raise TypeError(message)
    adopted = AdoptedServer(server)
    for notice in options.examine(adopted.original, adopted.low_level_of_author):
        if notice.fate == "refused":
            raise ValueError(notice.text)
        log.warning("%s", notice.text)
    bound = options.answer_bound(adopted.low_level_of_author)
    seconds = to_seconds(answer_within)
    lists = _read_lists(adopted)
    scopes = Scopes(adopted)
    about = _describe(adopted, lists)
    handlers: list[AdoptedHandler] = []
    unknown = set(replay)
    for list_name, entries in lists.items():
        for entry in [*entries, UNLISTED_ENTRY]:
            handler = KINDS[list_name](adopted, entry)
            handler.answer_within = min(seconds, bound) if bound else seconds
            handler.max_sheds = max_sheds
            handler.server_description = about
            scopes.restrict(handler, list_name)
            handler.hide_without_scopes = hide_without_scopes and bool(handler.scopes)
            handlers.append(handler)
            if entry:
                names = {handler.name, handler.key}
                handler.replays = not names.isdisjoint(replay)
                unknown -= names
    if unknown:
        message = f"replay names {', '.join(map(repr, sorted(unknown)))}, which the server does not list"
        raise ValueError(message)
    if handlers:
        handlers[0].extension_methods = options.extension_methods(adopted.low_level)
    return tuple(handlers)


class Scopes:
    """The scopes that an adopted server requires: of all its callers, and for single tools, prompts and resources."""

    def __init__(self, adopted: AdoptedServer) -> None:
        """Read the options and the components of a server."""
        self._restriction = options.restriction(adopted.original)
        self._of_server = options.required_scopes(adopted.original)
        self._of_all = scopes_of_all(adopted.original)
        self._of_entries = adopted.component_scopes()

    def restrict(self, handler: AdoptedHandler, list_name: str) -> None:
        """Give a handler the scopes that the server requires for it."""
        own = sorted(self._of_entries.get((list_name, handler.key), self._of_all))
        handler.scopes = tuple(dict.fromkeys([*self._of_server, *own]))
        handler.restricted_by = self._restriction
        if own and not self._restriction:
            handler.restricted_by = f"auth=require_scopes({', '.join(map(repr, own))}) of {handler.name_in_errors}"


def _read_lists(adopted: AdoptedServer) -> dict[ListName, list[ListEntry]]:
    """Read the lists that the server has; for each, its name ("tools", "prompts") -> its entries."""
    lists: dict[ListName, list[ListEntry]] = {}
    for method, list_name in LIST_METHODS.items():
        if adopted.low_level.get_request_handler(method):
            lists[list_name] = _read_list(adopted, method, list_name)
    return lists


def _read_list(adopted: AdoptedServer, method: str, list_name: ListName) -> list[ListEntry]:
    """Read one list; in the lifespan of the server only if that is needed, because a lifespan may open connections."""
    # Without the lifespan, a list that needs what the lifespan yields may raise anything.
    with suppress(Exception):
        return _read_pages(adopted, method, list_name)
    adopted.enter_lifespan()
    return _read_pages(adopted, method, list_name)


def _read_pages(adopted: AdoptedServer, method: str, list_name: ListName) -> list[ListEntry]:
    """Read all pages of a list."""
    entries: list[ListEntry] = []
    params: dict[str, Any] = {}
    cursors: set[str] = set()
    while len(cursors) < MAX_PAGES:
        result = adopted.read_page(method, params)
        entries += result[list_name]
        cursor = result.get("nextCursor")
        if cursor is None:
            return entries
        if cursor in cursors:
            message = f"{method} returns the cursor {cursor!r} again, so its pages never end"
            raise ValueError(message)
        cursors.add(cursor)
        params = {"cursor": cursor}
    message = f"{method} has more than {MAX_PAGES} pages"
    raise ValueError(message)


def _describe(adopted: AdoptedServer, lists: Mapping[ListName, list[ListEntry]]) -> Server:
    """Describe the server for the catalog: who it is, its extensions, and the order of its lists."""
    order: dict[ListName, list[str]] = {}
    for list_name, entries in lists.items():
        key_field = KINDS[list_name].key_field
        order[list_name] = [str(entry.get(key_field)) for entry in entries]
    server = adopted.low_level
    extensions = adopted.capabilities.extensions
    # The tasks of the server's library are not served.
    served = {name: own for name, own in (extensions or {}).items() if name != EXTENSION_TASKS}
    about: Server = {}
    if server.server_info_stamp:
        about["serverInfo"] = cast("ServerInfo", server.server_info_stamp)
    if server.instructions:
        about["instructions"] = server.instructions
    if served:
        about["extensions"] = served
    if order:
        about["order"] = order
    return about
