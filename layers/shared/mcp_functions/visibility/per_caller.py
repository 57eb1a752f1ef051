"""Answers each request with the catalog that its caller sees."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mcp_functions.handlers.catalog import LIST_NAMES
from mcp_functions.protocol import scopes
from mcp_functions.visibility.shown import show

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.protocol.catalog_types import Catalog
    from mcp_functions.protocol.messages import AnyResult, Request
    from mcp_functions.settings import Settings

# how many catalogs are kept; a token may hold any of the scopes that hide something
MOST_VIEWS = 64


def held_scopes(request: Request, settings: Settings) -> frozenset[str] | None:
    """Return the scopes that a caller holds; None with AuthMode none, in which everybody may call everything."""
    if settings.auth_mode == "none":
        return None
    return scopes.expand(request.scopes, settings.scope_hierarchy)


class PerCaller:
    """Answers a request with what `make_answer` made for the catalog of its caller."""

    def __init__(
        self,
        catalog: Catalog,
        settings: Settings,
        make_answer: Callable[[Mapping[str, Any]], Callable[[Request], AnyResult]],
    ) -> None:
        """Take the whole catalog. `make_answer` makes what answers the requests for a catalog."""
        self._settings = settings
        # Only these scopes change what a caller sees, so callers share a catalog whatever else their tokens allow.
        self._deciding: frozenset[str] = frozenset(
            scope
            for list_name in LIST_NAMES
            for needed in catalog["hidden"].get(list_name, {}).values()
            for scope in needed
        )

        @lru_cache(MOST_VIEWS)
        def answer_of(held: frozenset[str]) -> Callable[[Request], AnyResult]:
            return make_answer(show(catalog, held))

        self._answer_of = answer_of

    def answer(self, request: Request) -> AnyResult:
        """Answer a request; a name that its caller must not see is unknown."""
        held = held_scopes(request, self._settings)
        deciding = self._deciding if held is None else self._deciding & held
        return self._answer_of(deciding)(request)
