"""Proposals that were not released, for clients that ask for them: translations over the same rounds.

A deployment enables a dialect by its name (`MCP_DIALECTS`). A client asks for it in each request, with an experimental
capability; other clients get the released revision. Each module is one proposal, and deleting its file removes it.
"""

from __future__ import annotations

import re
from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from mcp_functions.dialects.dialect import DialectContext
from mcp_functions.handlers import lookup
from mcp_functions.protocol.constants import META_CLIENT_CAPABILITIES, META_PROTOCOL_VERSION, PROTOCOL_VERSION, RESUME
from mcp_functions.protocol.errors import InvalidRequestState, Misconfigured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mcp_functions.dialects.dialect import Dialect
    from mcp_functions.http.events import HttpRequest
    from mcp_functions.http.exchange import Continuation, Endpoint
    from mcp_functions.protocol.messages import AnyResult, ForwardedResponse, Request
    from mcp_functions.protocol.wire_types import JSONValue

__all__ = ["DialectContext", "add_to_front_door", "add_to_function"]

NAME = re.compile(r"sep-\d+(-[a-z]+)*")
UNKNOWN_FUNCTION = "unknown_function"


def add_to_function(endpoint: Endpoint, context: DialectContext) -> Endpoint:
    """Return the endpoint of a function with the deployment's dialects.

    Raises:
        Misconfigured: a dialect is unknown.
    """
    dialects, answer = _load(context.settings.dialects), endpoint.handle_request
    for dialect in dialects:
        answer = partial(dialect.answer, context, answer)
    return endpoint._replace(handle_request=answer, continue_dialect=partial(_continue_turn, dialects, context))


def add_to_front_door(
    endpoint: Endpoint, offered: Mapping[str, Any], forward: Callable[[str, Request], ForwardedResponse]
) -> Endpoint:
    """Return the endpoint of a front door that forwards the deployment's dialects.

    Raises:
        Misconfigured: a dialect is unknown.
    """
    spoken = FrontDoorDialects(_load(endpoint.settings.dialects), offered, endpoint.handle_request, forward)
    return endpoint._replace(handle_request=spoken.answer, continue_dialect=spoken.turn)


class FrontDoorDialects:
    """The dialects of a front door. It opens no token, and reads only the function's name before the seal."""

    def __init__(
        self,
        dialects: list[Dialect],
        offered: Mapping[str, Any],
        answer: Callable[[Request], AnyResult],
        forward: Callable[[str, Request], ForwardedResponse],
    ) -> None:
        """Use some dialects over the catalog `offered`; `answer` answers the released revision, `forward` sends on."""
        self._dialects, self._offered, self._answer, self._forward = dialects, offered, answer, forward
        self._functions = {folder for listed in offered["functions"].values() for folder in listed.values()}

    def answer(self, request: Request) -> AnyResult:
        """Answer a request, or forward it."""
        if request.message["id"] is None:
            return self._forward(request.params["function"], request)
        for dialect in self._dialects:
            task_id = dialect.task(request)
            if task_id is not None:
                return self._forward(lookup.task_function(self._offered, "tasks/get", {"taskId": task_id}), request)
        return self._answer(request)

    def turn(self, http: HttpRequest, body: JSONValue) -> Continuation | None:
        """Return a message for the function that continues a body; None if the body belongs to no dialect.

        The message has the id null, which no client's request can have, so `answer` forwards it.

        Raises:
            InvalidRequestState: the catalog lacks the function.
        """
        tokens = (dialect.token(http, body) for dialect in self._dialects)
        token = next((token for token in tokens if token is not None), None)
        if token is None:
            return None
        function = token.partition(".")[0]
        if function not in self._functions:
            raise InvalidRequestState(UNKNOWN_FUNCTION)
        meta: dict[str, Any] = {META_PROTOCOL_VERSION: PROTOCOL_VERSION, META_CLIENT_CAPABILITIES: {}}
        message: Any = {"jsonrpc": "2.0", "id": None, "method": RESUME, "params": {"function": function, "_meta": meta}}
        return http._replace(headers={**http.headers, "mcp-method": RESUME}), message


def _continue_turn(
    dialects: list[Dialect], context: DialectContext, http: HttpRequest, body: JSONValue
) -> Continuation | None:
    """Return the request that a body continues; None if the body belongs to no dialect.

    Raises:
        InvalidRequestState: the body's token belongs to another function or principal, or is invalid.
    """
    for dialect in dialects:
        if dialect.token(http, body) is not None:
            return dialect.turn(context, http, body)
    return None


def _load(names: Iterable[str]) -> list[Dialect]:
    """Return the dialects of these names."""
    known = {found.name for found in iter_modules(__path__) if found.name.startswith("sep_")}
    dialects: list[Dialect] = []
    for name in names:
        module = name.replace("-", "_")
        if not NAME.fullmatch(name) or module not in known:
            listed = ", ".join(sorted(one.replace("_", "-") for one in known))
            raise Misconfigured(reason=f"MCP_DIALECTS names {name!r}: there are {listed}")
        dialects.append(import_module(f"{__name__}.{module}").DIALECT)
    return dialects
