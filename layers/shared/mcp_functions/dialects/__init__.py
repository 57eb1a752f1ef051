"""Proposals that were not released, spoken to clients that ask for them: thin translations over the same rounds.

A deployment turns one on by its name (`MCP_DIALECTS`), a client asks for it on each request by declaring the name among
its experimental capabilities; whoever does not is answered as the released revision says. A module is a proposal: to
take one away, delete its file.
"""

from __future__ import annotations

import re
from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from mcp_functions.dialects.speaking import Place
from mcp_functions.handlers import catalog
from mcp_functions.protocol.constants import META_CLIENT_CAPABILITIES, META_PROTOCOL_VERSION, PROTOCOL_VERSION, RESUME
from mcp_functions.protocol.errors import InvalidRequestState, Misconfigured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mcp_functions.dialects.speaking import Dialect
    from mcp_functions.http.events import HttpRequest
    from mcp_functions.http.gateway import Continuation, Endpoint
    from mcp_functions.protocol.messages import AnyResult, ForwardedResponse, Request

__all__ = ["AtDoor", "AtFunction", "Place", "at_door", "at_function", "named"]

NAME = re.compile(r"sep-\d+(-[a-z]+)*")
UNHEARD = "unknown_function"


def named(names: Iterable[str]) -> list[Dialect]:
    """Find the dialects of these names.

    Raises:
        Misconfigured: there is none of such a name.

    """
    return [_named(name) for name in names]


def at_function(endpoint: Endpoint, place: Place) -> Endpoint:
    """Let a function speak the deployment's dialects too.

    Raises:
        Misconfigured: the deployment names one that there is not.

    """
    spoken = AtFunction(named(place.settings.dialects), place, endpoint.answer)
    return endpoint._replace(answer=spoken.answer, turn=spoken.turn)


def at_door(
    endpoint: Endpoint, offered: Mapping[str, Any], forward: Callable[[str, Request], ForwardedResponse]
) -> Endpoint:
    """Let the endpoint pass the deployment's dialects on.

    Args:
        endpoint: without them.
        offered: the catalog.
        forward: passes a request on to a function.

    Raises:
        Misconfigured: the deployment names one that there is not.

    """
    spoken = AtDoor(named(endpoint.settings.dialects), offered, endpoint.answer, forward)
    return endpoint._replace(answer=spoken.answer, turn=spoken.turn)


class AtFunction:
    """What a function speaks besides the released revision."""

    def __init__(self, dialects: Iterable[Dialect], place: Place, answer: Callable[[Request], AnyResult]) -> None:
        """Take the dialects, what they need, and what answers a request of the released revision."""
        self._dialects, self._place = list(dialects), place
        for dialect in self._dialects:
            answer = partial(dialect.answer, place, then=answer)
        self._answer = answer

    def answer(self, request: Request) -> AnyResult:
        """Answer a request, in the dialect that its client declares.

        Raises:
            McpError: whatever was wrong with it.

        """
        return self._answer(request)

    def turn(self, http: HttpRequest, value: Any) -> Continuation | None:  # noqa: ANN401 - JSON is any value
        """Read what is no message of the released revision: the request that it continues, or None.

        Raises:
            InvalidRequestState: it continues nothing that this function began, or somebody else's conversation.

        """
        heard = (dialect for dialect in self._dialects if dialect.token(http, value) is not None)
        dialect = next(heard, None)
        return dialect.turn(self._place, http, value) if dialect else None


class AtDoor:
    """What the endpoint passes on besides: it opens nothing, and reads no further than the name of a function."""

    def __init__(
        self,
        dialects: Iterable[Dialect],
        offered: Mapping[str, Any],
        answer: Callable[[Request], AnyResult],
        forward: Callable[[str, Request], ForwardedResponse],
    ) -> None:
        """Take the dialects, the catalog, what answers else, and what passes a request on to a function."""
        self._dialects, self._offered = list(dialects), offered
        self._answer, self._forward = answer, forward
        self._functions = {folder for listed in offered["functions"].values() for folder in listed.values()}

    def answer(self, request: Request) -> AnyResult:
        """Answer a request, or pass it on.

        Raises:
            McpError: the catalog has no such name, or the function could not be reached.

        """
        if request.message["id"] is None:
            return self._forward(request.params["function"], request)
        for dialect in self._dialects:
            if (task_id := dialect.task(request)) is not None:
                return self._forward(catalog.keeping(self._offered, "tasks/get", {"taskId": task_id}), request)
        return self._answer(request)

    def turn(self, http: HttpRequest, value: Any) -> Continuation | None:  # noqa: ANN401 - JSON is any value
        """Read which function goes on with what is no message of the released revision; None if it is nothing at all.

        The function stands in clear before the seal, which only that function opens. What the door hands to itself has
        the id null, which no request can have.

        Raises:
            InvalidRequestState: there is no such function.

        """
        tokens = (dialect.token(http, value) for dialect in self._dialects)
        token = next((found for found in tokens if found is not None), None)
        if token is None:
            return None
        function = token.partition(".")[0]
        if function not in self._functions:
            raise InvalidRequestState(UNHEARD)
        meta: dict[str, Any] = {META_PROTOCOL_VERSION: PROTOCOL_VERSION, META_CLIENT_CAPABILITIES: {}}
        message: Any = {"jsonrpc": "2.0", "id": None, "method": RESUME, "params": {"function": function, "_meta": meta}}
        return http._replace(headers={**http.headers, "mcp-method": RESUME}), message


def _named(name: str) -> Dialect:
    module = name.replace("-", "_")
    known = {found.name for found in iter_modules(__path__) if found.name.startswith("sep_")}
    if not NAME.fullmatch(name) or module not in known:
        listed = ", ".join(sorted(one.replace("_", "-") for one in known))
        message = f"MCP_DIALECTS names {name!r}: there are {listed}"
        raise Misconfigured(message)
    dialect: Dialect = import_module(f"{__name__}.{module}").DIALECT
    return dialect
