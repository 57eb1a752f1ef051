"""The scopes that an adopted server requires: of every caller, and for single tools, prompts and resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.adopt.component_scopes import scopes_of_all
from mcp_functions.adopt.library import kind_of
from mcp_functions.handlers.catalog import LISTS_BY_KIND

if TYPE_CHECKING:
    from mcp_functions.adopt.handlers import AdoptedHandler
    from mcp_functions.adopt.server import AdoptedServer


class Scopes:
    """The scopes that an adopted server requires: of all its callers, and for single tools, prompts and resources."""

    def __init__(self, adopted: AdoptedServer) -> None:
        """Read the options and the components of a server."""
        self._restriction = _restriction(adopted.original)
        self._of_server = _required_scopes(adopted.original)
        self._of_all = scopes_of_all(adopted.original)
        self._of_entries = adopted.component_scopes()

    def restrict(self, handler: AdoptedHandler) -> None:
        """Give a handler the scopes that the server requires for it."""
        own = sorted(self._of_entries.get((LISTS_BY_KIND[handler.kind], handler.key), self._of_all))
        handler.scopes = tuple(dict.fromkeys([*self._of_server, *own]))
        handler.restricted_by = self._restriction
        if own and not self._restriction:
            handler.restricted_by = f"auth=require_scopes({', '.join(map(repr, own))}) of {handler.name_in_errors}"


def _required_scopes(server: Any) -> list[str]:  # noqa: ANN401 - of three libraries
    """Return the scopes that the `auth` of a server requires of every caller, in the order of its author."""
    verifier = getattr(server, "_token_verifier", None)  # of an MCPServer, beside its settings
    return list(dict.fromkeys([*_scopes_of_verifier(_auth(server)), *_scopes_of_verifier(verifier)]))


def _scopes_of_verifier(auth: object, outer: tuple[object, ...] = ()) -> list[str]:
    """Return the scopes that a verifier requires, with those of the verifiers that it calls."""
    if any(auth is each for each in outer):  # a verifier may know the provider that calls it
        return []
    outer = (*outer, auth)
    scopes = list(getattr(auth, "required_scopes", None) or ())
    # MultiAuth takes a token that one of its verifiers takes, so only what all of them require is required.
    sources = [_scopes_of_verifier(source, outer) for source in getattr(auth, "_sources", ())]
    if sources:
        scopes += [scope for scope in sources[0] if all(scope in source for source in sources)]
    else:
        for part in getattr(auth, "__dict__", {}).values():
            scopes += _scopes_of_verifier(part, outer) if hasattr(part, "verify_token") else []
    return list(dict.fromkeys(scopes))


def _restriction(server: object) -> str:
    """Return the name of the option that lets in only callers with an access token; "" if every caller may come in."""
    return f"{kind_of(server)}(auth=…)" if _auth(server) else ""


def _auth(server: Any) -> object:  # noqa: ANN401 - of three libraries
    return getattr(server, "auth", None) or getattr(getattr(server, "settings", None), "auth", None)
