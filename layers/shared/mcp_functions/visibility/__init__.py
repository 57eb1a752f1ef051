"""Lists for the caller: a handler with `hide_without_scopes=True` exists only for callers who hold its scopes.

    @tool(scopes=["bank:write"], hide_without_scopes=True)
    def transfer(): ...

The catalog of a deployment has such handlers in its member "hidden" (`handlers.catalog`). `show` takes from the catalog
what a caller must not see, and `PerCaller` answers each request with what was made for such a catalog. So no code after
it can tell a hidden name from an unknown one, and no answer can.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from mcp_functions.handlers.catalog import LIST_NAMES, PROPERTIES_OF_TOOLS, key_of
from mcp_functions.protocol import scopes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from mcp_functions.protocol.catalog_types import Catalog, Folders, Server
    from mcp_functions.protocol.messages import AnyResult, Request
    from mcp_functions.settings import Settings

MOST_VIEWS = 64  # are kept; a token may hold any of the scopes that hide something


class PerCaller:
    """Answers a request with what `make_answer` made for the catalog of its caller."""

    def __init__(
        self, catalog: Catalog, settings: Settings, make_answer: Callable[[Catalog], Callable[[Request], AnyResult]]
    ) -> None:
        """Take the whole catalog. `make_answer` makes what answers the requests for a catalog."""
        self._settings = settings
        hidden = catalog["hidden"]
        alternatives = [needed for list_name in LIST_NAMES for needed in hidden.get(list_name, {}).values()]
        # Only these scopes change what a caller sees, so callers share a catalog whatever else their tokens allow.
        self._deciding = frozenset(scope for needed in alternatives for scope in needed)
        self._answer_for = lru_cache(MOST_VIEWS)(lambda held: make_answer(show(catalog, held)))

    def answer(self, request: Request) -> AnyResult:
        """Answer a request; a name that its caller must not see is unknown."""
        held = held_scopes(request.scopes, self._settings)
        return self._answer_for(self._deciding if held is None else self._deciding & held)(request)


def held_scopes(granted: Collection[str], settings: Settings) -> frozenset[str] | None:
    """Return the scopes that a caller holds, of those that the access token grants.

    It is None with AuthMode none, in which everybody may call everything. With AuthMode iam nobody has scopes.
    """
    return None if settings.auth_mode == "none" else scopes.expand(granted, settings.scope_hierarchy)


def show_to(granted: Collection[str], catalog: Catalog, settings: Settings) -> Catalog:
    """Return a catalog as a caller sees it whose access token grants these scopes."""
    held = held_scopes(granted, settings)
    return catalog if held is None else show(catalog, held)


def show(catalog: Catalog, held: frozenset[str]) -> Catalog:
    """Return a catalog without what needs scopes that are not in `held`.

    The member "hidden" stays, because it says that lists differ between callers. No client gets it.
    """
    hidden = {
        list_name: {key for key, needed in catalog["hidden"].get(list_name, {}).items() if not held.issuperset(needed)}
        for list_name in LIST_NAMES
    }
    if not any(hidden.values()):
        return catalog
    shown = catalog.copy()
    functions: Folders = {}
    for list_name, keys in hidden.items():
        shown[list_name] = [entry for entry in catalog[list_name] if key_of(entry) not in keys]
        folders = catalog["functions"][list_name]
        functions[list_name] = {key: folder for key, folder in folders.items() if key not in keys}
    shown["functions"] = functions
    for member in PROPERTIES_OF_TOOLS:
        shown[member] = [name for name in catalog.get(member, ()) if name not in hidden["tools"]]
    shown["tasks"] = [folder for folder in catalog.get("tasks", ()) if folder in functions["tools"].values()]
    shown_folders = {folder for folders in functions.values() for folder in folders.values()}
    methods = catalog.get("methods", {})
    shown["methods"] = {method: folder for method, folder in methods.items() if folder in shown_folders}
    skills = catalog.get("skills", {})
    shown["skills"] = {uri: digest for uri, digest in skills.items() if uri not in hidden["resources"]}
    shown["servers"] = _shown_servers(catalog, held)
    return shown


def _shown_servers(catalog: Catalog, held: frozenset[str]) -> list[Server]:
    """Return what authors wrote about the servers of which the caller sees a handler: their instructions, for example.

    The member "hidden" has the index of each server whose handlers are all hidden, with the scopes of each handler.
    """
    servers = []
    for index, server in enumerate(catalog.get("servers", ())):
        alternatives = catalog["hidden"].get("servers", {}).get(str(index))
        if alternatives is None or any(held.issuperset(needed) for needed in alternatives):
            servers.append(server)
    return servers
