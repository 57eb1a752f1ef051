"""What an adopted server sends to its client during a call: questions, progress and log messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import anyio
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.transport_context import TransportContext

from mcp_functions.rounds.notifications import Log, Progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp.shared.dispatcher import CallOptions
    from mcp.shared.message import MessageMetadata

    from mcp_functions.adopt.interview import Interview
    from mcp_functions.protocol.wire_types import InputRequest
    from mcp_functions.rounds.round import Round

KIND = "streamable-http"
QUESTIONS = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})
FORM_MEMBERS = ("$schema", "type", "properties", "required")  # of a `requestedSchema`; pydantic also writes a title
ONLY_EARLIER = "elicitationId"  # 2026-07-28 removed it: nothing tells a client that a page was completed


class SilentChannel:
    """The client of a request that cannot be asked or notified: a list, or a completion."""

    can_send_request = False
    message_metadata: MessageMetadata = None

    def __init__(self, request_id: str = "1") -> None:
        """Take the id that the server reads as its request's."""
        self.request_id = request_id
        self.transport = TransportContext(kind=KIND, can_send_request=self.can_send_request)
        self.cancel_requested = anyio.Event()  # never set: Lambda does not learn that a client left

    async def send_raw_request(
        self, method: str, _params: Mapping[str, Any] | None, _opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Refuse a request to the client.

        Raises:
            NoBackChannelError: always.
        """
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, _opts: CallOptions | None = None) -> None:
        """Drop a notification."""

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Drop a report of progress."""


class Channel(SilentChannel):
    """The client of one round: its answers come from the record, its notifications go before the result."""

    can_send_request = True

    def __init__(self, round_: Round, interview: Interview) -> None:
        """Take the round and its questions."""
        super().__init__(f"{round_.request.flow or 'call'}-{round_.request.number}")
        self._interview = interview
        self._log, self._progress = Log(round_), Progress(round_)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, _opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Return the client's answer, or end the round with the question.

        Raises:
            InputRequired: the client has to answer first.
            NoBackChannelError: the client cannot be asked this.
        """
        if method == "ping":
            return {}
        if method not in QUESTIONS:
            raise NoBackChannelError(method)
        return dict(self._interview.ask(_request(method, params or {})))

    async def notify(self, method: str, params: Mapping[str, Any] | None, _opts: CallOptions | None = None) -> None:
        """Send a log message or progress; no other notification can reach the client of a Lambda."""
        sent = params or {}
        if method == "notifications/message" and not self._interview.is_replaying:
            self._log(sent["level"], sent.get("data"), logger=sent.get("logger"))
        if method == "notifications/progress":
            await self.progress(sent["progress"], sent.get("total"), sent.get("message"))

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress, if the client asked for it, and no earlier round has reported it."""
        if not self._interview.is_replaying:
            self._progress(progress, total=total, message=message)


def _request(method: str, params: Mapping[str, Any]) -> InputRequest:
    """Write a question as 2026-07-28 does."""
    kept = {name: value for name, value in params.items() if name not in ("_meta", ONLY_EARLIER)}
    if "requestedSchema" in kept:
        schema = kept["requestedSchema"]
        kept |= {"mode": "form", "requestedSchema": {name: schema[name] for name in FORM_MEMBERS if name in schema}}
    return cast("InputRequest", {"method": method, "params": kept})
