"""Lists for the caller: a handler with `hide_without_scopes=True` exists only for callers who hold its scopes.

    @tool(scopes=["bank:write"], hide_without_scopes=True)
    def transfer(): ...

The catalog of a deployment has such handlers in its member "hidden" (`handlers.catalog`). `show` takes from the catalog
what a caller must not see, and `PerCaller` answers each request with what was made for such a catalog. So no code after
it can tell a hidden name from an unknown one, and no answer can.
"""

from __future__ import annotations

from mcp_functions.visibility.per_caller import PerCaller, held_scopes
from mcp_functions.visibility.shown import show, show_to

__all__ = ["PerCaller", "held_scopes", "show", "show_to"]
