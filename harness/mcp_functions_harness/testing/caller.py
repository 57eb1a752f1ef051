"""The client of a conversation: who calls, with which scopes, and what the client can do.

API Gateway checks an access token before it calls a function, and writes the token's claims into the event. So a test
needs no token: it writes the claims itself.
"""

from collections.abc import Mapping
from typing import NamedTuple

from mcp_functions.protocol.event_types import Authorizer, Event
from mcp_functions.protocol.messages import Principal
from mcp_functions.protocol.wire_types import ClientCapabilities, JSONRPCMessage, Params
from mcp_functions_harness import environment
from mcp_functions_harness.api_gateway.events import Moment, event_of_message
from mcp_functions_harness.client import messages

RESOURCE = "https://mcp.example/mcp"  # the audience of access tokens
TOKEN_SECONDS = 3600


class Caller(NamedTuple):
    """The caller's principal, scopes and capabilities. Without a principal, the caller is not signed in."""

    principal: Principal | None
    scopes: tuple[str, ...]
    capabilities: ClientCapabilities

    def environment(self) -> Mapping[str, str | None]:
        """Return the variables of a deployment that accepts this caller's tokens."""
        if self.principal is None:
            return {}
        return environment.for_tokens(issuer=self.principal.iss, resource=RESOURCE)

    def message(self, request_id: int, method: str, params: Params) -> JSONRPCMessage:
        """Return a JSON-RPC request with this client's `_meta`."""
        return messages.message(method, params, request_id, self.capabilities)

    def event(self, message: JSONRPCMessage, route: str, moment: Moment, now: float) -> Event:
        """Return API Gateway's event for a message on a route, as in /mcp/book; `now` is in unix seconds."""
        return event_of_message(message, route, moment, self._authorizer(now))

    def _authorizer(self, now: float) -> Authorizer | None:
        """Return the access token's claims as API Gateway's JWT authorizer passes them on."""
        if self.principal is None:
            return None
        claims = {
            "iss": self.principal.iss,
            "sub": self.principal.sub,
            "client_id": self.principal.client,
            "aud": RESOURCE,
            "exp": str(int(now) + TOKEN_SECONDS),
            "scope": " ".join(self.scopes),
        }
        return {"jwt": {"claims": claims, "scopes": None}}


def as_principal(caller: Principal | str | None) -> Principal | None:
    """Return a principal for a name, its subject; a principal, or None, is returned as it is."""
    if isinstance(caller, str):
        return Principal(iss="https://issuer.example", sub=caller, client="client")
    return caller
