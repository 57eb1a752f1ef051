"""Reads the lists of an adopted server, when its module loads: all pages of its tools, prompts and resources."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from mcp_functions.protocol.constants import LIST_METHODS

if TYPE_CHECKING:
    from mcp_functions.adopt.server import AdoptedServer
    from mcp_functions.protocol.catalog_types import ListName
    from mcp_functions.protocol.wire_types import ListEntry, Params

MAX_PAGES = 1000  # pages of one list; a server whose cursors never end gets an error


def read_lists(adopted: AdoptedServer) -> dict[ListName, list[ListEntry]]:
    """Read the lists that the server has; for each, its name ("tools", "prompts") -> its entries."""
    lists: dict[ListName, list[ListEntry]] = {}
    for method, list_name in LIST_METHODS.items():
        if adopted.low_level.get_request_handler(method):
            lists[list_name] = _read_list(adopted, method, list_name)
    return lists


def _read_list(adopted: AdoptedServer, method: str, list_name: ListName) -> list[ListEntry]:
    """Read one list; in the lifespan of the server only if that is needed, because a lifespan may open connections."""
    with suppress(Exception):  # without the lifespan, a list that needs it may raise anything
        return _read_pages(adopted, method, list_name)
    adopted.lifespan.enter()
    return _read_pages(adopted, method, list_name)


def _read_pages(adopted: AdoptedServer, method: str, list_name: ListName) -> list[ListEntry]:
    """Read all pages of a list."""
    entries: list[ListEntry] = []
    params: Params = {}
    cursors: set[str] = set()
    while len(cursors) < MAX_PAGES:
        result = adopted.read_page(method, params)
        entries += result[list_name]
        cursor = result.get("nextCursor")
        if cursor is None:
            return entries
        if cursor in cursors:
            raise ValueError(f"{method} returns the cursor {cursor!r} again, so its pages never end")
        cursors.add(cursor)
        params = {"cursor": cursor}
    raise ValueError(f"{method} has more than {MAX_PAGES} pages")
