"""Runs requests with an adopted server: an unchanged server that was written with the library `mcp` or `fastmcp`.

    server = AdoptedServer(FastMCP("clinic"))
    server.read_page("tools/list", {})                            a page of a list
    server.call("tools/call", params, round_, "ward", replays=…)  the result of a tool, or its questions

The library answers each request as if it had come over the network (`serve_one`). A back channel takes the place of
the connection: it gets what the server sends to the client meanwhile (`back_channel`).
"""

from __future__ import annotations

import asyncio
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mcp.server.connection import Connection
from mcp.server.request_state import RequestStateBoundary
from mcp.server.runner import modern_error_data, serve_one
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from mcp_functions.adopt.back_channel import KIND, RoundChannel, SilentChannel, is_of_channel
from mcp_functions.adopt.library import as_caller, asking_at_2026, find_low_level, find_outermost, over_transport
from mcp_functions.adopt.options import kind_of
from mcp_functions.adopt.scopes import read_scopes
from mcp_functions.adopt.steps import current_round
from mcp_functions.handlers import event_loop
from mcp_functions.handlers.lazy_values import lazy_value
from mcp_functions.protocol import constants
from mcp_functions.protocol.constants import PROTOCOL_VERSION
from mcp_functions.protocol.errors import McpError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_types import ServerCapabilities

    from mcp_functions.protocol.messages import Request
    from mcp_functions.rounds.round import Round

# The `_meta` of a request that this toolkit itself makes.
OWN_META: dict[str, Any] = {constants.META_PROTOCOL_VERSION: PROTOCOL_VERSION, constants.META_CLIENT_CAPABILITIES: {}}


class AdoptedError(McpError):
    """A JSON-RPC error of an adopted server, as its own library writes it."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        """Keep the code, which differs from error to error, beside the message."""
        super().__init__(message=message, data=data)
        self.code = code


class AdoptedServer:
    """An adopted server, by its low-level `Server`.

    Attributes:
        original: the server, as its author made it.
        low_level_of_author: the low-level server inside it.
        low_level: a copy of that, which answers requests. It has the handlers, the middleware and the lifespan, a
            context manager that is open while the server runs.
        enter_lifespan: enters the lifespan, if no earlier call did.
    """

    def __init__(self, server: object) -> None:
        """Take a copy of the low-level server, without the middleware that seals states.

        A state is what a handler remembers until the user answers. This toolkit seals it: the middleware has a key that
        only this process knows, and another process may continue the call.

        Raises:
            TypeError: `server` is none of the three kinds.
        """
        self.low_level_of_author = find_low_level(server)
        # FastMCP's low-level server has only a weak reference to its FastMCP. This attribute keeps the FastMCP alive.
        self.original = find_outermost(server)
        self.low_level = copy(self.low_level_of_author)
        self._take_middleware()
        self.enter_lifespan = lazy_value(self._enter_lifespan)
        self._lifespan_state: object = {}  # what the lifespan yielded; {} before it is entered

    @cached_property
    def capabilities(self) -> ServerCapabilities:
        """The capabilities that the server declares. A lifespan may add some, so they are read after the lists."""
        return self.low_level.get_capabilities(protocol_version=PROTOCOL_VERSION)

    def _take_middleware(self) -> None:
        """Take the middleware that the server has now: its author may add some later. What seals states stays out."""
        own = [each for each in self.low_level_of_author.middleware if not isinstance(each, RequestStateBoundary)]
        self.low_level.middleware = own

    def _enter_lifespan(self) -> None:
        self._lifespan_state = event_loop.enter(self.low_level.lifespan(self.low_level))

    def read_page(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Read one page of a list, with every entry: at each call, the server decides whether its caller may."""
        # over others, FastMCP leaves out the entries that the caller may not use
        with over_transport("stdio"):
            return self._answer_silently(method, params)

    def component_scopes(self) -> dict[tuple[str, str], set[str]]:
        """Return the scopes that a FastMCP server requires for each entry, by the entry's list and key."""
        if kind_of(self.original) != "FastMCP":
            return {}
        with over_transport("stdio"):  # as in `read_page`
            return event_loop.run(read_scopes(self.original))

    def answer(self, method: str, params: Mapping[str, Any], caller: Request) -> dict[str, Any]:
        """Answer a request that calls no tool, prompt or resource, as its caller: a completion, or an extension's own.

        Raises:
            AdoptedError: the server answered with a JSON-RPC error.
        """
        self.enter_lifespan()
        with over_transport(KIND), as_caller(caller):
            return self._answer_silently(method, params)

    def call(
        self, method: str, params: Mapping[str, Any], round_: Round, name: str, *, replays: bool
    ) -> dict[str, Any]:
        """Run one round of a tool, prompt or resource; return its result, which may be an InputRequiredResult.

        Args:
            method: the method of the request.
            params: the params of the request.
            round_: the round to run.
            name: the name of the tool, prompt or resource, for error messages.
            replays: whether it asks in the middle of its work, and runs again from its first line in every round.

        Raises:
            InputRequired: the round ends with a question.
            AdoptedError: the server answered with a JSON-RPC error.
        """
        self.enter_lifespan()  # here, because code that runs in the event loop cannot enter it
        coroutine = self._run_round(method, params, round_, name, replays=replays)
        return event_loop.run(coroutine, before_end=round_.wait_for_steps)

    async def _run_round(
        self, method: str, params: Mapping[str, Any], round_: Round, name: str, *, replays: bool
    ) -> dict[str, Any]:
        sent = {key: value for key, value in params.items() if key not in ("requestState", "inputResponses")}
        sent |= _answers_and_state(round_, replays=replays)
        current_round.set(round_ if replays else None)
        channel = RoundChannel(round_, name, replays=replays)
        with over_transport(KIND), as_caller(round_.request), asking_at_2026(allowed=replays):
            try:
                result = await self._answer(method, sent, channel)
            except asyncio.CancelledError:
                round_.check_not_ended()  # the channel may have cancelled the handler, to end it
                raise
            finally:
                channel.close()
        # FastMCP itself refuses `ctx.elicit` if it is not allowed to ask, and the channel gets no question.
        refusal = "elicitation via server-initiated requests is unavailable"
        if result.get("isError") and refusal in str(result["content"]):
            channel.refuse()
        # the handler may have caught what ended the round, and returned questions
        round_.check_not_ended()
        channel.check_complete()
        if result.get("resultType") == "input_required":
            channel.end_with_returned_questions(result)
        return result

    def _answer_silently(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Run a request during which the server can send nothing to the client."""
        sent = {"_meta": OWN_META, **params}
        return event_loop.run(self._answer(method, sent, SilentChannel()))

    async def _answer(self, method: str, params: Mapping[str, Any], channel: SilentChannel) -> dict[str, Any]:
        """Run one request with the library. It is one of 2026-07-28, where a server may have its own way to ask.

        Raises:
            AdoptedError: the server answered with a JSON-RPC error.
        """
        self._take_middleware()
        meta = params["_meta"]
        client_info = meta.get(constants.META_CLIENT_INFO)
        capabilities = meta.get(constants.META_CLIENT_CAPABILITIES)
        connection = Connection.from_envelope(PROTOCOL_VERSION, client_info, capabilities, outbound=channel)
        try:
            state = self._lifespan_state
            return await serve_one(self.low_level, channel, method, params, connection=connection, lifespan_state=state)
        except (MCPError, ValidationError) as error:
            written = modern_error_data(error)  # the JSON-RPC error, as the library writes it
            raise AdoptedError(written.code, written.message, written.data) from None


def _answers_and_state(round_: Round, *, replays: bool) -> dict[str, Any]:
    """Return the params for a handler that returns its questions: the user's answers, and the server's own state.

    The record of the round holds both. An answer is there only if its question was asked. The channel itself gives a
    handler that replays the answers to the channel's questions.
    """
    responses = {
        key: next(iter(answers.values()))
        for key, answers in round_.record.answers.items()
        if not (replays and is_of_channel(key))
    }
    params: dict[str, Any] = {}
    if responses:
        params["inputResponses"] = responses
    if round_.record.state is not None:
        params["requestState"] = round_.record.state
    return params
