"""Answers `server/discover`, and the list methods page by page.

    tools/list {}                          {"tools": [… 100 entries …], "nextCursor": "5e88489bf3a1-100"}
    tools/list {"cursor": "5e88…-100"}     {"tools": [… the other entries …]}

The entries come from a catalog (`handlers.catalog`). Most clients get all of them. Some get a view of the catalog
(`apps.listings`): a client that cannot show questions, for example, also gets tools that take the user's answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    from mcp_functions.protocol.wire_types import JSONObject, ListEntry, Meta, Params, SkillEntry
    from mcp_functions.settings import Settings

# The capability that `server/discover` declares for each list.
CAPABILITIES = {"tools": "tools", "prompts": "prompts", "resources": "resources", "resourceTemplates": "resources"}


class Lists:
    """Answers `server/discover` and the list methods. It writes the JSON of each first page once, and keeps it."""

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        """Take the catalog and the settings.

        A front door adds its own description to the catalog, as the member "endpoint". Its instructions come before
        those of the functions, and its `serverInfo` replaces theirs.
        """
        endpoint = catalog.get("endpoint", {})
        servers = [endpoint, *catalog.get("servers", ())]
        self._catalog = catalog
        self._settings = settings
        self._instructions = "\n\n".join(server["instructions"] for server in servers if server.get("instructions"))
        self._server_info = server_info(catalog, settings.server_info)
        self._first_pages: dict[tuple[View | None, str], Result] = {}  # by view and method

    def answer(self, method: str, params: Params) -> Result:
        """Answer `server/discover` or a list method.

        Raises:
            MethodNotFound: no handler belongs to this list.
            UnknownName: the cursor does not belong to this list.
        """
        view = self._view_of(params["_meta"])
        if params.get("cursor") is not None:  # clients of 2025 send null for what they leave out
            return self._write(view, method, params)
        if (view, method) not in self._first_pages:
            self._first_pages[view, method] = self._write(view, method, params)
        return self._first_pages[view, method]

    def _view_of(self, meta: Meta) -> View | None:
        """Return the client's view of the catalog; None if the client sees the catalog unchanged."""
        capabilities = meta.get(constants.META_CLIENT_CAPABILITIES)
        shows_questions = isinstance(capabilities, dict) and shows_forms(capabilities)
        hides_tools = bool(self._catalog.get("apps"))  # some tools are only for clients with apps
        adds_tools = bool(self._catalog.get("asks")) and not shows_questions
        if not hides_tools and not adds_tools:
            return None
        # most clients see the whole catalog
        from mcp_functions.apps import listings

        return listings.view_of(self._catalog, meta)

    def _write(self, view: View | None, method: str, params: Params) -> Result:
        """Write the result of a method, and its JSON."""
        catalog = self._catalog
        cache = self._settings.cache
        if view is not None:
            from mcp_functions.apps import listings

            catalog = listings.show(catalog, view)
        if view is not None or "hidden" in catalog:
            # A shared cache must not give this client's view, or this caller's lists, to another one.
            cache = {**cache, "cacheScope": "private"}
        if method == "server/discover":
            result = self._discover(catalog)
        else:
            result = self._page(catalog, LIST_METHODS[method], params)
        result = complete({**result, **cache}, self._server_info)
        return Result(result, text=dumps(result))

    def _discover(self, catalog: Catalog) -> dict[str, Any]:
        """Answer `server/discover`."""
        # Neither `listChanged` nor `subscribe` is advertised: no Lambda runs long enough to send a notification later.
        capabilities: JSONObject = {capability: {} for capability in _list_capabilities(catalog)}
        for capability in ("completions", "logging"):
            if catalog[capability]:
                capabilities[capability] = {}
        extensions = _extensions(catalog)
        if extensions:
            capabilities["extensions"] = extensions
        if self._settings.dialects:
            capabilities["experimental"] = {name: {} for name in self._settings.dialects}
        result = {"supportedVersions": list(constants.SUPPORTED_VERSIONS), "capabilities": capabilities}
        if self._instructions:
            result["instructions"] = self._instructions
        return result

    def _page(self, catalog: Catalog, list_name: ListName, params: Params) -> dict[str, Any]:
        """Answer one page of a list (server/utilities/pagination).

        Raises:
            MethodNotFound: no handler belongs to the list.
            UnknownName: the cursor does not belong to this list.
        """
        if CAPABILITIES[list_name] not in _list_capabilities(catalog):
            raise MethodNotFound
        return page(list_name, catalog[list_name], params, self._settings.page_size)


def page(list_name: str, entries: Sequence[ListEntry | SkillEntry], params: Params, size: int) -> dict[str, Any]:
    """Return the page of a list that the cursor in the params names: the first one without a cursor.

    Raises:
        UnknownName: the cursor does not belong to this list.
    """
    cursor = params.get("cursor")
    start = 0 if cursor is None else _find_start(entries, cursor, size)
    end = start + size
    found: dict[str, Any] = {list_name: entries[start:end]}
    if end < len(entries):
        found["nextCursor"] = _cursor(entries, end)
    return found


def _list_capabilities(catalog: Catalog) -> list[str]:
    """List the capabilities that the handlers of a catalog have: "tools", "prompts" or "resources"."""
    # An adopted server can serve a name without an entry, and the toolkit's form has an entry without a function.
    lists = [list_name for list_name in LIST_NAMES if catalog[list_name] or catalog["functions"][list_name]]
    return [CAPABILITIES[list_name] for list_name in lists]


def _extensions(catalog: Catalog) -> dict[str, Any]:
    """Return the extensions that the server advertises. A catalog may contain servers of other libraries (`adopt`)."""
    extensions: dict[str, Any] = {}
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
    # most lists have one page
    import hashlib

    # the entry of a skill has no name
    names = dumps([entry.get("name") or entry["uri"] for entry in entries])
    digest = hashlib.sha256(names.encode()).hexdigest()
    return f"{digest[:12]}-{start}"
