"""The two types that pass every door: `Request` on the way in, `Answer` on the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.protocol.constants import EXTENSION_TASKS, META_CLIENT_CAPABILITIES, META_SERVER_INFO
from mcp_functions.protocol.errors import MissingRequiredClientCapability

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.wire_types import JSONRPCRequest


class Principal(NamedTuple):
    """Who calls, as API Gateway's authorizer says: never a token, never a header of the client."""

    iss: str
    sub: str
    client: str


class Request(NamedTuple):
    """One JSON-RPC request as it arrived over HTTP."""

    message: JSONRPCRequest
    headers: Mapping[str, str]  # names in lower case
    principal: Principal | None
    address: str  # of who calls, as the gateway saw it: whom to charge for failed attempts, if there is no principal
    deadline: float  # unix seconds; after it nobody waits for the answer
    event: Mapping[str, Any]  # what API Gateway sent, for a front door to pass on unchanged
    scopes: frozenset[str] = frozenset()  # that the caller's token grants
    ends: float = 0.0  # unix seconds at which Lambda ends this function; 0 where nobody knows
    task_ttl: int = 0  # milliseconds for which a client of a dialect wants a task to be kept; 0: as the tool says

    @property
    def params(self) -> dict[str, Any]:
        """The params of the message."""
        return self.message["params"]

    @property
    def capabilities(self) -> dict[str, Any]:
        """What the client declared on this very request: "servers MUST NOT infer capabilities from prior requests"."""
        declared = self.params["_meta"][META_CLIENT_CAPABILITIES]
        return declared if isinstance(declared, dict) else {}

    @property
    def takes_tasks(self) -> bool:
        """Whether the client declared on this very request that it knows tasks."""
        extensions = self.capabilities.get("extensions")
        return isinstance(extensions, dict) and isinstance(extensions.get(EXTENSION_TASKS), dict)

    def must_take_tasks(self) -> None:
        """Refuse a request that only a client that knows tasks may make.

        Raises:
            MissingRequiredClientCapability: it did not say so on this very request.

        """
        if not self.takes_tasks:
            raise MissingRequiredClientCapability({"extensions": {EXTENSION_TASKS: {}}})


class Body(NamedTuple):
    """The body of a response in a dialect, whose messages this revision does not have."""

    text: str
    is_stream: bool


class Answer(NamedTuple):
    """A result, and the notifications that go before it. The gateway writes both, unless a dialect did."""

    result: Mapping[str, Any]
    notifications: tuple[Mapping[str, Any], ...] = ()
    body: Body | None = None
    text: str = ""  # the result as JSON, if it is the same for every request: a list is written once


class Forwarded(NamedTuple):
    """Another Lambda's HTTP response, to be passed on unchanged."""

    response: Mapping[str, Any]


def complete(result: Mapping[str, Any], server: Mapping[str, str]) -> dict[str, Any]:
    """Stamp a result: "every result MUST include a resultType", and the server SHOULD name itself in `_meta`."""
    named = {META_SERVER_INFO: server}
    meta = {**result["_meta"], **named} if "_meta" in result else named
    return {"resultType": "complete", **result, "_meta": meta}
