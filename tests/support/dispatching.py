"""A Lambda function without a deployment, made of its handlers, and a client of it."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Any, Literal

from mcp_functions.assembly import Options, Parts, assemble
from mcp_functions.dispatch.seal_factory import SealFactory
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.seal.codec_adapter import CodecAdapter
from mcp_functions.seal.request_state import RequestStates
from tests.support import wire
from tests.support.settings import make_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.handlers.base import Handler
    from mcp_functions.settings import Settings


class OwnStates(SealFactory):
    """A seal factory whose states a test makes itself, from their lifetime in seconds."""

    def __init__(self, settings: Settings, make: Callable[[int], RequestStates]) -> None:
        super().__init__(settings, "test", now=time)
        self._make = make

    def _make_states(self, lifetime: int, label: bytes) -> RequestStates:  # noqa: ARG002 - one label
        return self._make(lifetime)


def make_parts(
    handlers: Sequence[Handler[..., Any]],
    settings: Settings,
    folder: str,
    seals: SealFactory | None,
    **others: Any,  # noqa: ANN401 - the clock `now`, and `audit` of `serve`
) -> Parts:
    """Make the parts of the endpoint of some handlers, which `assemble` puts together."""
    parts = Parts(settings, folder, others.get("now", time), Options(handlers, audit=others.get("audit")))
    parts.seals = seals
    return parts


class Client:
    """A client of a function with some handlers.

    Attributes:
        now: the function's clock, in unix seconds.
        messages: the JSON-RPC messages of the last response, the notifications first.
    """

    def __init__(
        self,
        *handlers: Handler[..., Any],
        audience: str = "local/test/local",
        auth_mode: Literal["none", "iam"] = "none",
        codec: wire.PlainCodec | None = None,
        has_keys: bool = True,
    ) -> None:
        """Make the function.

        Args:
            handlers: its tools, prompts and resources.
            audience: the server that a state is for.
            auth_mode: how the function knows its caller.
            codec: writes and reads the states; None: the function has one of its own.
            has_keys: whether the function can seal states.
        """
        self.now = 1_785_000_000.0
        self.messages: list[dict[str, Any]] = []
        adapter = CodecAdapter(codec or wire.PlainCodec(), b"")
        settings = make_settings(auth_mode=auth_mode, server_name="test", server_version="1")

        def make_states(lifetime: int) -> RequestStates:
            return RequestStates(
                adapter,
                now=lambda: self.now,
                lifetime_seconds=lifetime,
                anonymous=auth_mode == "none",
            )

        seals = OwnStates(settings, make_states) if has_keys else None
        parts = make_parts(handlers, settings, "test", seals, now=lambda: self.now)
        parts.audience = audience
        endpoint = assemble(parts)
        self._function = LambdaFunction(lambda _name, _now: endpoint, handlers, now=lambda: self.now)

    def send(self, method: str, params: Mapping[str, Any] | None = None, **options: Any) -> wire.Reply:  # noqa: ANN401
        """Send a request. Options: those of `wire.message`, and `context` for the event's requestContext."""
        message = wire.message(method, params, **options)
        response = self._function(wire.event(message, context=options.get("context", {})), wire.Context())
        self.messages = wire.messages(response)
        reply = wire.Reply.of(response, method)
        assert reply.body["id"] == message["id"]
        return reply

    def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        state: Any = None,  # noqa: ANN401 - any JSON
        answers: Mapping[str, Any] | None = None,
        **options: Any,  # noqa: ANN401 - the options of `send`
    ) -> wire.Reply:
        """Call a tool, or continue its conversation with a state and answers."""
        members = {"arguments": arguments, "requestState": state, "inputResponses": answers}
        present = {name: value for name, value in members.items() if value is not None}
        return self.send("tools/call", {"name": tool, **present}, **options)
