"""The back channel of an adopted server: what the server sends to its client while it works on a request.

The server's library calls a back channel where it would write to a connection. Progress and log messages go to the
client before the result. A question is answered from what earlier rounds (requests of the same call) have recorded, or
it ends the round. The next round runs the tool again from its first line, so the tool asks again from the first
question:

    round 1   asks question-1                  no answer is known: the round ends with question-1
    round 2   asks question-1, question-2      the first is answered from the record; the round ends with question-2

An adopted tool gives its questions no keys, so each question has its number as its key. The sealed state holds a
fingerprint of the words of each question, and an answer counts only for these words. If a round asks question-1 with
other words than the round before, the answers no longer fit, and the call ends.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, NoReturn

import anyio
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.transport_context import TransportContext

from mcp_functions.observability.lines import log
from mcp_functions.protocol.errors import ToolError
from mcp_functions.rounds.input_requests import fingerprint
from mcp_functions.rounds.notifications import Log, Progress
from mcp_functions.rounds.questions import WireQuestion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp.shared.dispatcher import CallOptions
    from mcp.shared.message import MessageMetadata

    from mcp_functions.protocol.wire_types import JSONObject
    from mcp_functions.rounds.round import Round

KIND = "streamable-http"  # the transport that the server believes it has
QUESTIONS = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})
# a `requestedSchema` may have no others
FORM_MEMBERS = ("$schema", "type", "properties", "required")
# The members of a question that 2026-07-28 does not have. `elicitationId` was for a message that a page was completed.
DROPPED_MEMBERS = ("_meta", "elicitationId")
NOT_NAMED_MESSAGE = (
    "{name} asks its user in the middle of its work, so it would run again from its first line in every round. Its "
    "author accepts that with adopt(server, replay=[{name!r}])."
)
OTHER_TASK_MESSAGE = (
    "{name} asks in a task of its own (asyncio.gather, create_task or a TaskGroup), where the order of questions may "
    "change from round to round. Ask one question after the other."
)
SAME_QUESTION_MESSAGE = (
    "{name} asks the same question twice in one call, so one answer could count for both. Give each its own words."
)
OWN_KEY_MESSAGE = (
    "{name} returns a question with the key {key!r}, and this toolkit gives such keys to the questions of ctx.elicit. "
    "Give it another key, or leave the handler out of replay."
)
DIVERGED_MESSAGE = (
    "{name} did not ask question {number} as in the round before, so the answers no longer belong to its questions. "
    "Its questions may depend only on its arguments, on answers and on steps."
)


def is_of_channel(key: str) -> bool:
    """Whether a question has the key of a channel, and not one of a handler that returns its questions."""
    return re.fullmatch(r"question-\d+", key) is not None


class SilentChannel:
    """The back channel of a request whose client cannot be asked or notified: a list, or a completion."""

    can_send_request = False
    message_metadata: MessageMetadata = None

    def __init__(self, request_id: str = "1") -> None:
        """Keep the id that the server reads as the id of its request."""
        self.request_id = request_id
        self.transport = TransportContext(kind=KIND, can_send_request=self.can_send_request)
        # it is never set: Lambda does not learn that a client left
        self.cancel_requested = anyio.Event()

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


class RoundChannel(SilentChannel):
    """The back channel of one round. It is made in the asyncio task that runs the tool, prompt or resource."""

    can_send_request = True

    def __init__(self, round_: Round, name: str, *, replays: bool) -> None:
        """Begin with no question.

        Args:
            round_: the round that runs.
            name: the name of the tool, prompt or resource, for error messages.
            replays: whether the author accepts that it runs again in every round (`adopt(server, replay=…)`).
        """
        super().__init__(f"{round_.history.flow or 'call'}-{round_.history.number}")
        self._round = round_
        self._name = name
        self._replays = replays
        self._task = asyncio.current_task()  # None when the tool has returned
        self._asked: set[str] = set()  # the fingerprints of the questions of this round
        self._log = Log(round_)
        self._progress = Progress(round_)

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
        return dict(self._ask(_to_2026_07_28(method, params or {})))

    async def notify(self, method: str, params: Mapping[str, Any] | None, _opts: CallOptions | None = None) -> None:
        """Send a log message or progress; no other notification can reach the client of a Lambda."""
        sent = params or {}
        if method == "notifications/message" and not self._is_repeating():
            self._log(sent["level"], sent.get("data"), logger=sent.get("logger"))
        if method == "notifications/progress":
            await self.progress(sent["progress"], sent.get("total"), sent.get("message"))

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress, if the client asked for it, and no earlier round has reported it."""
        if not self._is_repeating():
            self._progress(progress, total=total, message=message)

    def _ask(self, request: JSONObject) -> JSONObject:
        """Return the client's answer to a question, or end the round with it."""
        if not self._replays:
            self.refuse()
        if asyncio.current_task() is not self._task:
            self._end(OTHER_TASK_MESSAGE)
        asked_now = fingerprint(request)
        if asked_now in self._asked:
            self._end(SAME_QUESTION_MESSAGE)
        asked_before = self._next_asked_before()
        self._asked.add(asked_now)
        if asked_before not in (None, asked_now):
            self._end(DIVERGED_MESSAGE, number=len(self._asked))
        answers: list[JSONObject] = self._round.ask(WireQuestion(f"question-{len(self._asked)}", request, read=dict))
        return answers[0]

    def refuse(self) -> NoReturn:
        """End the call of a handler that asks, and whose author has not accepted that it runs again."""
        self._end(NOT_NAMED_MESSAGE)

    def close(self) -> None:
        """Note that the handler has returned: a task that it left running cannot end what follows."""
        self._task = None

    def check_complete(self) -> None:
        """End the call if it returned before it asked all that an earlier round had asked."""
        if self._is_repeating():
            self._end(DIVERGED_MESSAGE, number=len(self._asked) + 1)

    def end_with_returned_questions(self, result: Mapping[str, Any]) -> NoReturn:
        """End the round with the questions and the state that the handler returned, as servers do since 2026-07-28.

        The record is what the next round knows of this one. It drops the answers to returned questions: the handler
        keeps them in its own state if it needs them, and reads only the answers to its last questions.
        """
        requests: Mapping[str, JSONObject] = result.get("inputRequests") or {}
        for key in list(self._round.record.answers):
            if not (self._replays and is_of_channel(key)):
                del self._round.record.answers[key]
        for key, request in requests.items():
            if self._replays and is_of_channel(key):
                self._end(OWN_KEY_MESSAGE, key=key)
            self._round.questions.open_low_level(key, request)
        self._round.record.state = result.get("requestState")
        raise self._round.interrupted()

    def _is_repeating(self) -> bool:
        """Tell whether the handler repeats what an earlier round has done: that round asked more questions by now."""
        return self._next_asked_before() is not None

    def _next_asked_before(self) -> str | None:
        """Return the fingerprint that the next question had in an earlier round; None if none asked so many."""
        if not self._replays:
            return None
        key = f"question-{len(self._asked) + 1}"
        answered: Mapping[str, Any] | None = self._round.record.answers.get(key)
        if answered:
            # its only member: the fingerprint of the question -> the answer
            return next(iter(answered))
        return self._round.questions.asked_before.get(key)

    def _end(self, rule: str, **values: object) -> NoReturn:
        """End the call with an error that names the rule, for its caller and in the log.

        The round ends, so that the tool cannot catch the error and go on.
        """
        text = rule.format(name=self._name, **values)
        log.warning("%s", text)
        self._round.failed(ToolError(text))
        if self._task and self._task is not asyncio.current_task():
            # What a task of its own raises, asyncio may return to the tool as a value, so the tool would go on.
            self._task.cancel()
        raise self._round.interrupted()


def _to_2026_07_28(method: str, params: Mapping[str, Any]) -> JSONObject:
    """Write a question of the revision 2025-11-25 as an input request of 2026-07-28."""
    kept = {name: value for name, value in params.items() if name not in DROPPED_MEMBERS}
    if "requestedSchema" in kept:
        schema = kept["requestedSchema"]
        kept["mode"] = "form"
        kept["requestedSchema"] = {name: schema[name] for name in FORM_MEMBERS if name in schema}
    return {"method": method, "params": kept}
