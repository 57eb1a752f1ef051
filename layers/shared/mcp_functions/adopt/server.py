"""An adopted server: a server written with the library `mcp` or `fastmcp`, whose own code answers our requests.

`MCPServer` and `FastMCP` both wrap a low-level `Server`, which has the handlers, the middleware and the lifespan (the
context manager that is open while the server runs). The function `serve_one` of `mcp` runs one request. The revision of
MCP decides what the server may send to the client meanwhile:

    request                                     revision      what the server may send
    a list, a completion                        2026-07-28    nothing
    a call of a handler that replays            2025-11-25    questions, progress and log messages
    any other call                              2026-07-28    progress and log messages

A handler replays if its author named it in `adopt(server, replay=…)`: it runs again, from its first line, in each round
of a call. A round is one request.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any

from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary
from mcp.server.runner import modern_error_data, serve_one
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from mcp_functions.adopt.channel import KIND, Channel, SilentChannel
from mcp_functions.adopt.interview import Interview
from mcp_functions.adopt.steps import current_round
from mcp_functions.handlers import event_loop
from mcp_functions.handlers.lazy_values import lazy_value
from mcp_functions.protocol.constants import (
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_PROTOCOL_VERSION,
    PROTOCOL_VERSION,
)
from mcp_functions.protocol.errors import McpError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mcp_functions.adopt.handlers import AdoptedHandler
    from mcp_functions.rounds.round import Round

REVISION_WITH_QUESTIONS = "2025-11-25"  # the last revision in which a server may send requests to its client
# The private attributes in which MCPServer and FastMCP keep their low-level server.
LOW_LEVEL_ATTRIBUTES = ("_lowlevel_server", "_mcp_server")
# Part of the error with which FastMCP itself refuses `ctx.elicit` at 2026-07-28: the channel gets no question then.
FASTMCP_REFUSAL = "elicitation via server-initiated requests is unavailable"
# The `_meta` of a request that this toolkit itself makes.
OWN_META: dict[str, Any] = {META_PROTOCOL_VERSION: PROTOCOL_VERSION, META_CLIENT_CAPABILITIES: {}}
ROUND_PARAMS = ("requestState", "inputResponses")  # the params that this toolkit reads itself; see `_answers_and_state`


class AdoptedError(McpError):
    """A JSON-RPC error of an adopted server, as its own library writes it."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        """Keep the code, which differs from error to error, beside the message."""
        super().__init__(message, data)
        self.code = code


class AdoptedServer:
    """The low-level server of an adopted server. This toolkit seals its states, and not the server's own library.

    Attributes:
        capabilities: the capabilities that the server declares.
        enter_lifespan: enters the server's lifespan at its first call; each call returns what the lifespan yields.
    """

    def __init__(self, server: object) -> None:
        """Find the low-level server. The copy shares its handlers, and the original keeps its own seal.

        Raises:
            TypeError: `server` is none of the three kinds.
        """
        # FastMCP's low-level server has only a weak reference to its FastMCP. This attribute keeps the FastMCP alive.
        self.original = server
        self.low_level = copy(find_low_level(server))
        # The library's own seal has a key that only this process knows, and another process may run the next round.
        self.low_level.middleware = [
            each for each in self.low_level.middleware if not isinstance(each, RequestStateBoundary)
        ]
        self.capabilities = self.low_level.get_capabilities(protocol_version=PROTOCOL_VERSION)
        self.enter_lifespan = lazy_value(lambda: event_loop.enter(self.low_level.lifespan(self.low_level)))

    def list(self, method: str, params: Mapping[str, Any], state: object) -> dict[str, Any]:
        """Read one page of a list, with every entry: the server decides at each call whether a caller may use an entry.

        Args:
            method: the method of the list.
            params: the params of the request, without `_meta`.
            state: what the lifespan yielded; {} before it is entered.
        """
        with _transport("stdio"):  # over other transports, FastMCP leaves out what the caller may not use
            return self._answer_silently(method, params, state)

    def complete(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Complete an argument."""
        return self._answer_silently("completion/complete", params, self.enter_lifespan())

    def call(self, handler: AdoptedHandler, params: Mapping[str, Any], round_: Round) -> dict[str, Any]:
        """Run one round of a tool, prompt or resource; return its result, which may be an InputRequiredResult.

        Raises:
            InputRequired: the round ends with a question.
            AdoptedError: the server answered with a JSON-RPC error.
        """
        state = self.enter_lifespan()  # here, because code that runs in the event loop cannot enter it
        return event_loop.run(self._run_round(handler, params, round_, state), before_end=round_.wait_for_steps)

    async def _run_round(
        self, handler: AdoptedHandler, params: Mapping[str, Any], round_: Round, state: object
    ) -> dict[str, Any]:
        interview = Interview(handler.name_in_errors, round_, accepted=handler.replays)
        sent = {key: value for key, value in params.items() if key not in ROUND_PARAMS}
        if handler.replays:
            version = REVISION_WITH_QUESTIONS
            current_round.set(round_)
        else:
            version = PROTOCOL_VERSION
            current_round.set(None)
            sent |= _answers_and_state(round_)
        channel = Channel(round_, interview)
        with _transport(KIND), _as_caller(round_):
            result = await self._answer(handler.method, sent, channel=channel, version=version, state=state)
        if result.get("isError") and FASTMCP_REFUSAL in str(result["content"]):
            interview.refuse()
        interview.check_complete()
        return result

    def _answer_silently(self, method: str, params: Mapping[str, Any], state: object) -> dict[str, Any]:
        """Run a request during which the server can send nothing to the client."""
        sent = {**params, "_meta": OWN_META}
        channel = SilentChannel()
        return event_loop.run(self._answer(method, sent, channel=channel, version=PROTOCOL_VERSION, state=state))

    async def _answer(
        self, method: str, params: Mapping[str, Any], *, channel: SilentChannel, version: str, state: object
    ) -> dict[str, Any]:
        """Run one request with the server's own library, which sends to the channel.

        Raises:
            AdoptedError: the server answered with a JSON-RPC error.
        """
        meta = params["_meta"]
        connection = Connection.from_envelope(
            version, meta.get(META_CLIENT_INFO), meta.get(META_CLIENT_CAPABILITIES), outbound=channel
        )
        try:
            return await serve_one(self.low_level, channel, method, params, connection=connection, lifespan_state=state)
        except (MCPError, ValidationError) as error:
            written = modern_error_data(error)  # the JSON-RPC error, as the server's own library writes it
            raise AdoptedError(written.code, written.message, written.data) from None


def find_low_level(server: object) -> Server[Any]:
    """Find the low-level server inside another one.

    Raises:
        TypeError: `server` is none of the three kinds.
    """
    found = server
    for attribute in LOW_LEVEL_ATTRIBUTES:
        found = getattr(found, attribute, found)
    if not isinstance(found, Server):
        kinds = "mcp.server.mcpserver.MCPServer, mcp.server.Server or fastmcp.FastMCP (4 or newer)"
        message = f"adopt takes one server: {kinds}, and not {type(server).__module__}.{type(server).__name__}"
        raise TypeError(message)
    return found


def _answers_and_state(round_: Round) -> dict[str, Any]:
    """Return the params for a handler that returns its questions: the user's answers, and the server's own state.

    The record of the round holds the server's state. Only answers to questions that were asked are passed on.
    """
    asked_before = round_.questions.asked_before
    responses = {key: response for key, response in round_.request.responses.items() if key in asked_before}
    params: dict[str, Any] = {}
    if responses:
        params["inputResponses"] = responses
    if round_.record.state is not None:
        params["requestState"] = round_.record.state
    return params


@contextmanager
def _transport(kind: str) -> Iterator[None]:
    """Tell FastMCP over which transport a request came, if FastMCP is loaded: some of its features depend on it."""
    context: Any = sys.modules.get("fastmcp.server.context")
    if context is None:
        yield
        return
    token = context.set_transport(kind)
    try:
        yield
    finally:
        context.reset_transport(token)


@contextmanager
def _as_caller(round_: Round) -> Iterator[None]:
    """Tell the server who the caller is, as API Gateway says. The caller's access token is not passed on."""
    principal = round_.request.principal
    user = None
    if principal:
        token = AccessToken(
            token="",
            client_id=principal.client,
            scopes=sorted(round_.request.scopes),
            subject=principal.sub,
            claims={"iss": principal.iss, "sub": principal.sub},
        )
        user = AuthenticatedUser(token)
    before = auth_context_var.set(user)
    try:
        yield
    finally:
        auth_context_var.reset(before)
