"""The back channel of an adopted server: what the server sends to its client while it works on a request.

The server's library calls a back channel where it would write to a connection. Progress and log messages go to the
client before the result. A question goes to `questions`, which answers it or ends the round.
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

    from mcp_functions.adopt.questions import AdoptedQuestions
    from mcp_functions.protocol.wire_types import JSONObject

KIND = "streamable-http"  # the transport that the server believes it has
QUESTIONS = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})
FORM_MEMBERS = ("$schema", "type", "properties", "required")  # a `requestedSchema` has no others
# The members of a question that 2026-07-28 does not have. `elicitationId` was for a message that a page was completed.
DROPPED_MEMBERS = ("_meta", "elicitationId")


class SilentChannel:
    """The back channel of a request whose client cannot be asked or notified: a list, or a completion."""

    can_send_request = False
    message_metadata: MessageMetadata = None

    def __init__(self, request_id: str = "1") -> None:
        """Keep the id that the server reads as the id of its request."""
        self.request_id = request_id
        self.transport = TransportContext(kind=KIND, can_send_request=self.can_send_request)
        self.cancel_requested = anyio.Event()  # never set: no Lambda learns that a client left

    async def send_raw_request(
        self, method: str, _params: Mapping[str, Any] | None, _opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Refuse a request to the client with a NoBackChannelError."""
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, _opts: CallOptions | None = None) -> None:
        """Drop a notification."""

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Drop a report of progress."""


class RoundChannel(SilentChannel):
    """The back channel of one round."""

    can_send_request = True

    def __init__(self, questions: AdoptedQuestions) -> None:
        """Send to the client of a round."""
        history = questions.round.history
        super().__init__(f"{history.flow or 'call'}-{history.number}")
        self._questions = questions
        self._log = Log(questions.round)
        self._progress = Progress(questions.round)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, _opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Return the client's answer, or end the round with the question.

        Raises:
            InputRequired: the client has to answer first, or the call cannot continue.
            NoBackChannelError: the client cannot be asked this.
        """
        if method == "ping":
            return {}
        if method not in QUESTIONS:
            raise NoBackChannelError(method)
        return dict(self._questions.ask(_to_2026_07_28(method, params or {})))

    async def notify(self, method: str, params: Mapping[str, Any] | None, _opts: CallOptions | None = None) -> None:
        """Send a log message or progress; no other notification can reach the client of a Lambda."""
        sent = params or {}
        if method == "notifications/message" and not self._questions.is_repeating():
            self._log(sent["level"], sent.get("data"), logger=sent.get("logger"))
        if method == "notifications/progress":
            await self.progress(sent["progress"], sent.get("total"), sent.get("message"))

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress, if the client asked for it, and no earlier round has reported it."""
        if not self._questions.is_repeating():
            self._progress(progress, total=total, message=message)


def _to_2026_07_28(method: str, params: Mapping[str, Any]) -> JSONObject:
    """Write a question of the revision 2025-11-25 as an input request of 2026-07-28."""
    kept = {name: value for name, value in params.items() if name not in DROPPED_MEMBERS}
    if "requestedSchema" in kept:
        schema = kept["requestedSchema"]
        kept["mode"] = "form"
        kept["requestedSchema"] = {name: schema[name] for name in FORM_MEMBERS if name in schema}
    return {"method": method, "params": kept}
