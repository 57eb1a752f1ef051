"""Answers `server/discover`, and the list methods page by page.

    tools/list {}                          {"tools": [… 100 entries …], "nextCursor": "5e88489bf3a1-100"}
    tools/list {"cursor": "5e88…-100"}     {"tools": [… the other entries …]}

The entries come from a catalog (`handlers.catalog`). Most clients get all of them. Some get a view of the catalog
(`apps.listings`): a client that cannot show questions, for example, also gets tools that take the user's answers.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, cast

from mcp_functions.handlers.catalog import LIST_NAMES, server_info
from mcp_functions.protocol import constants
from mcp_functions.protocol.constants import LIST_METHODS
from mcp_functions.protocol.errors import MethodNotFound, UnknownName
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.messages import Result, complete, shows_forms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_functions.apps.listings import View
    from mcp_functions.protocol.catalog_types import Catalog, ListName
    from mcp_functions.protocol.wire_types import JSONObject, ListEntry, Meta, Params, ResultObject, SkillEntry
    from mcp_functions.settings import Settings

# The capability that `server/discover` declares for each list.
CAPABILITIES = {"tools": "tools", "prompts": "prompts", "resources": "resources", "resourceTemplates": "resources"}


class Lists:
    """Answers `server/discover` and the list methods. It writes the JSON of each first page once, and keeps it."""

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        """Take the catalog and the settings. The instructions of a front door come before those of the functions."""
        servers = [catalog.get("front_door", {}), *catalog.get("servers", ())]
        self._catalog = catalog
        self._settings = settings
        self._instructions = "\n\n".join(server["instructions"] for server in servers if server.get("instructions"))
        self._server_info = server_info(catalog, settings.server_info)
        self._first_page = cache(partial(self._write, cursor=None))

    def answer(self, method: str, params: Params) -> Result:
        """Answer `server/discover` or a list method.

        Raises:
            MethodNotFound: no handler belongs to this list.
            UnknownName: the cursor does not belong to this list.
        """
        view = self._view_of(params["_meta"])
        cursor = params.get("cursor")
        if cursor is None:  # clients of 2025 send null for what they leave out
            return self._first_page(view, method)
        return self._write(view, method, cursor)

    def _view_of(self, meta: Meta) -> View | None:
        """Return the client's view of the catalog; None if the client sees the catalog unchanged."""
        capabilities = meta.get(constants.META_CLIENT_CAPABILITIES)
        shows_questions = isinstance(capabilities, dict) and shows_forms(capabilities)
        hides_tools = bool(self._catalog.get("apps"))  # some tools are only for clients with apps
        adds_tools = bool(self._catalog.get("asks")) and not shows_questions
        if not hides_tools and not adds_tools:
            return None
        from mcp_functions.apps import listings

        return listings.view_of(self._catalog, meta)

    def _write(self, view: View | None, method: str, cursor: str | None) -> Result:
        """Write the result of a method, and its JSON."""
        catalog = self._catalog
        cache_hints = self._settings.cache_hints
        if view is not None:
            from mcp_functions.apps import listings

            catalog = listings.show(catalog, view)
        if view is not None or "hidden" in catalog:
            # A shared cache must not give this client's view, or this caller's lists, to another one.
            cache_hints["cacheScope"] = "private"
        if method == "server/discover":
            result = self._discover(catalog)
        else:
            result = self._page(catalog, LIST_METHODS[method], cursor)
        result.update(cache_hints)
        completed = complete(result, self._server_info)
        return Result(completed, text=dumps(completed))

    def _discover(self, catalog: Catalog) -> ResultObject:
        """Answer `server/discover`; without `listChanged`, because no Lambda runs long enough to notify a client."""
        capabilities: JSONObject = {capability: {} for capability in _list_capabilities(catalog)}
        if catalog["completions"]:
            capabilities["completions"] = {}
        if catalog["logging"]:
            capabilities["logging"] = {}
        extensions = _extensions(catalog)
        if extensions:
            capabilities["extensions"] = extensions
        if self._settings.dialects:
            capabilities["experimental"] = {name: {} for name in self._settings.dialects}
        result: ResultObject = {"supportedVersions": list(constants.SUPPORTED_VERSIONS), "capabilities": capabilities}
        if self._instructions:
            result["instructions"] = self._instructions
        return result

    def _page(self, catalog: Catalog, list_name: ListName, cursor: str | None) -> ResultObject:
        """Answer one page of a list (server/utilities/pagination)."""
        if CAPABILITIES[list_name] not in _list_capabilities(catalog):
            raise MethodNotFound
        return page(list_name, catalog[list_name], cursor, self._settings.page_size)


def page(list_name: str, entries: Sequence[ListEntry | SkillEntry], cursor: str | None, size: int) -> ResultObject:
    """Return the page that a cursor names, the first one without a cursor; UnknownName if it is not of this list."""
    start = 0 if cursor is None else _find_start(entries, cursor, size)
    end = start + size
    found = cast("ResultObject", {list_name: entries[start:end]})
    if end < len(entries):
        found["nextCursor"] = _cursor(entries, end)
    return found


def _list_capabilities(catalog: Catalog) -> list[str]:
    """List the capabilities that the handlers of a catalog have: "tools", "prompts" or "resources"."""
    # An adopted server can serve a name without an entry, and the toolkit's form has an entry without a function.
    lists = [list_name for list_name in LIST_NAMES if catalog[list_name] or catalog["functions"][list_name]]
    return [CAPABILITIES[list_name] for list_name in lists]


def _extensions(catalog: Catalog) -> dict[str, JSONObject]:
    """Return the extensions that the server advertises. A catalog may contain servers of other libraries (`adopt`)."""
    extensions: dict[str, JSONObject] = {}
    for server in catalog.get("servers", ()):
        extensions = {**server.get("extensions", {}), **extensions}
    if catalog.get("tasks"):
        extensions[constants.EXTENSION_TASKS] = {}
    if catalog.get("has_form"):
        extensions[constants.EXTENSION_APPS] = {}
    if catalog.get("skills"):
        extensions[constants.EXTENSION_SKILLS] = {"directoryRead": True}
    return extensions


def _find_start(entries: Sequence[ListEntry | SkillEntry], cursor: object, size: int) -> int:
    """Find the index of the first entry on the page of a cursor."""
    for start in range(size, len(entries), size):
        if cursor == _cursor(entries, start):
            return start
    # server/utilities/pagination: "Invalid cursors SHOULD result in an error with code -32602"
    raise UnknownName(message="Unknown cursor")


def _cursor(entries: Sequence[ListEntry | SkillEntry], start: int) -> str:
    """Write the cursor of the page that begins at an index: a hash of all names in the list, and the index.

    A deployment that adds or removes names makes older cursors invalid, because of the hash. A cursor without a hash
    would then skip or repeat entries, and the client would not notice.
    """
    import hashlib

    names = dumps([entry.get("name") or entry["uri"] for entry in entries])  # a skill has no name
    digest = hashlib.sha256(names.encode()).hexdigest()
    return f"{digest[:12]}-{start}"
