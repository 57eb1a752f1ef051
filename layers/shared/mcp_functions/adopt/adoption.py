"""`adopt`: an unchanged server, written with `mcp` or `fastmcp`, becomes handlers for `serve`.

The lists of the server are read once, when the module loads. Each entry becomes a handler. One more handler of each
kind serves names that the lists leave out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from mcp_functions.adopt import options
from mcp_functions.adopt.handlers import AdoptedPrompt, AdoptedResource, AdoptedTemplate, AdoptedTool
from mcp_functions.adopt.library import answer_bound, extension_methods
from mcp_functions.adopt.lists import read_lists
from mcp_functions.adopt.scopes import Scopes
from mcp_functions.adopt.server import AdoptedServer
from mcp_functions.handlers.base import to_seconds
from mcp_functions.handlers.catalog import LISTS_BY_KIND
from mcp_functions.observability.lines import log
from mcp_functions.protocol.constants import EXTENSION_TASKS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from mcp_functions.adopt.handlers import AdoptedHandler
    from mcp_functions.protocol.catalog_types import ListName, Server
    from mcp_functions.protocol.wire_types import ListEntry

KINDS: dict[ListName, type[AdoptedHandler]] = {
    LISTS_BY_KIND[each.kind]: each for each in (AdoptedTool, AdoptedPrompt, AdoptedResource, AdoptedTemplate)
}
UNLISTED_ENTRY: ListEntry = {}  # the entry of the handler for names that a list leaves out


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
        raise TypeError(f"replay is a list of names: replay=[{replay!r}]")
    adopted = AdoptedServer(server)
    _report_options(adopted)
    lists = read_lists(adopted)
    scopes = Scopes(adopted)
    about = _describe(adopted, lists)
    seconds = to_seconds(answer_within)
    seconds = min(seconds, answer_bound(adopted.low_level_of_author) or seconds)
    handlers: list[AdoptedHandler] = []
    for list_name, entries in lists.items():
        handlers += [KINDS[list_name](adopted, entry) for entry in [*entries, UNLISTED_ENTRY]]
    for handler in handlers:
        handler.replays = handler.is_listed and not {handler.name, handler.key}.isdisjoint(replay)
        handler.answer_within = seconds
        handler.max_sheds = max_sheds
        handler.server_description = about
        scopes.restrict(handler)
        handler.hide_without_scopes = hide_without_scopes and bool(handler.scopes)
    _check_names(replay, handlers)
    if handlers:
        handlers[0].extension_methods = extension_methods(adopted.low_level)
    return tuple(handlers)


def _check_names(replay: Sequence[str], handlers: Sequence[AdoptedHandler]) -> None:
    """Refuse a name of `replay` that no list has."""
    listed = {name for handler in handlers if handler.is_listed for name in (handler.name, handler.key)}
    unknown = sorted(set(replay) - listed)
    if unknown:
        raise ValueError(f"replay names {', '.join(map(repr, unknown))}, which the server does not list")


def _report_options(adopted: AdoptedServer) -> None:
    """Log what changes about the options of a server, and refuse a server with one that cannot be carried over."""
    for notice in options.examine(adopted.original, adopted.low_level_of_author):
        if notice.fate == "refused":
            raise ValueError(notice.text)
        log.warning("%s", notice.text)


def _describe(adopted: AdoptedServer, lists: Mapping[ListName, list[ListEntry]]) -> Server:
    """Describe the server for the catalog: who it is, its extensions, and the order of its lists."""
    order = {name: [str(entry.get(KINDS[name].key_field)) for entry in entries] for name, entries in lists.items()}
    server = adopted.low_level
    extensions = adopted.capabilities.extensions
    about = {
        "serverInfo": server.server_info_stamp,
        "instructions": server.instructions,
        # The tasks of the server's library are not served.
        "extensions": {name: own for name, own in (extensions or {}).items() if name != EXTENSION_TASKS},
        "order": order,
    }
    return cast("Server", {name: value for name, value in about.items() if value})
