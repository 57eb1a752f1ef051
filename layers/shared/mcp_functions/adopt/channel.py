"""The client that an adopted server sees during a call: it takes questions, progress and log messages.

The server's library calls a channel where it would write to a connection. A question is answered from what earlier
rounds (requests of the same call) have recorded, or it ends the round. Progress and log messages go to the real client
before the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.transport_context import TransportContext

from mcp_functions.rounds.notifications import Log, Progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp.shared.dispatcher import CallOptions
    from mcp.shared.message import MessageMetadata

    from mcp_functions.adopt.interview import Interview
    from mcp_functions.protocol.wire_types import JSONObject
    from mcp_functions.rounds.round import Round

KIND = "streamable-http"  # the transport that the server believes it has
QUESTIONS = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})
FORM_MEMBERS = ("$schema", "type", "properties", "required")  # a `requestedSchema` may have no others
# The members of a question that 2026-07-28 does not have. `elicitationId` was for a message that a page was completed.
DROPPED_MEMBERS = ("_meta", "elicitationId")


class SilentChannel:
    """The client of a request that cannot be asked or notified: a list, or a completion."""

    can_send_request = False
    message_metadata: MessageMetadata = None

    def __init__(self, request_id: str = "1") -> None:
        """Keep the id that the server reads as the id of its request."""
        self.request_id = request_id
        self.transport = TransportContext(kind=KIND, can_send_request=self.can_send_request)
        self.cancel_requested = anyio.Event()  # it is never set: Lambda does not learn that a client left

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
    """The client of one round. `Interview` answers the questions."""

    can_send_request = True

    def __init__(self, round_: Round, interview: Interview) -> None:
        """Use the round, and the interview that answers its questions."""
        super().__init__(f"{round_.history.flow or 'call'}-{round_.history.number}")
        self._interview = interview
        self._log = Log(round_)
        self._progress = Progress(round_)

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
        return dict(self._interview.ask(_to_2026_07_28(method, params or {})))

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


def _to_2026_07_28(method: str, params: Mapping[str, Any]) -> JSONObject:
    """Write a question of the revision 2025-11-25 as an input request of 2026-07-28."""
    kept = {name: value for name, value in params.items() if name not in DROPPED_MEMBERS}
    if "requestedSchema" in kept:
        schema = kept["requestedSchema"]
        kept["mode"] = "form"
        kept["requestedSchema"] = {name: schema[name] for name in FORM_MEMBERS if name in schema}
    return {"method": method, "params": kept}
