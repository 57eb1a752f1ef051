"""The questions that an author's function asks in one round: each gets its answer, or goes to the client.

The function runs from its first line in every round (a request of its call), so it asks the same questions again:

    round 1    elicit("seat", "Which seat?", Seat)    no answer yet: the round ends, and the client gets the question
    round 2    elicit("seat", "Which seat?", Seat)    the request brought the answer, and the function gets it

A question is known by its key and its fingerprint, a digest of the JSON that the client gets. The sealed state, which
no client can change, has the fingerprints of the questions that a round asked. So a response counts only if the
previous round asked this question. `Record.answers` keeps it for all later rounds: {key: {fingerprint: response}}.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.json_reader import copy_json
from mcp_functions.rounds import input_requests
from mcp_functions.schemas.forms import InvalidAnswer
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.protocol.wire_types import InputRequest, JSONObject
    from mcp_functions.rounds.record import Record

ACTIONS = ("accept", "decline", "cancel")
MAX_TIMES_ASKED = 10_000  # in one round: a loop that waits for another answer would never end
# A new version of a function may change a question between two rounds. If a question changes more often, its key or its
# message comes from a clock or from chance, and the function would never get an answer.
MAX_MESSAGE_CHANGES = 2
MAX_KEY_CHANGES = 1


class WireQuestion(NamedTuple):
    """A question as the client gets it, and the function that reads the response."""

    key: str  # the question's key in `inputRequests`
    request: JSONObject  # an ElicitRequest, CreateMessageRequest or ListRootsRequest of schema.ts
    # Returns the answer. It raises InvalidAnswer if the response does not fit the question, and any other exception if
    # the author's function should get that exception in place of an answer.
    read: Callable[[JSONObject], object]
    # True if an answer counts once: when the function asks again in the same round, the user is asked again. A user may
    # have to open a page a second time, because the first visit failed (`elicit.url`).
    read_once: bool = False


class Outcome(NamedTuple):
    """What the author's function gets for a question."""

    answer: object = None
    error: Exception | None = None  # raised in place of the answer: the user declined, for example
    is_open: bool = False  # True if the client has to answer first


OPEN = Outcome(is_open=True)


class AskedQuestion:
    """A question that the function has asked in this round, perhaps more than once."""

    def __init__(self, fingerprint: str) -> None:
        """Take the fingerprint of the question, which the function has not asked yet."""
        self.fingerprint = fingerprint
        self.times_asked = 0  # it stays 0 for a low-level function, which returns its questions
        self.has_response = False  # True if the function got the response, or if that was invalid


class Questions:
    """The questions of one round. The lock of the round guards them, because a function may use several threads.

    Attributes:
        asked_before: the fingerprints of the previous round's questions by key, from the sealed state.
        actions: the user's actions in this request by key, as AuditRecord has them.
    """

    def __init__(self, record: Record, asked_before: Mapping[str, str], responses: Mapping[str, JSONObject]) -> None:
        """Record all responses at once, for the next round: this one may end before the function asks for them."""
        self.asked_before = asked_before
        self.actions: dict[str, str] = {}
        self._record = record
        self._asked: dict[str, AskedQuestion] = {}  # by key
        self._open: dict[str, JSONObject] = {}  # by key, oldest first; the client has to answer them
        self._record_responses(responses)

    def _record_responses(self, responses: Mapping[str, JSONObject]) -> None:
        """Record the responses to the previous round's questions. A later response never replaces an earlier one."""
        for key, fingerprint in self.asked_before.items():
            recorded = self._record.answers.get(key, {})
            if key in responses and fingerprint not in recorded:
                self._record.answers[key] = {**recorded, fingerprint: responses[key]}
                action = responses[key].get("action")
                self.actions[key] = action if action in ACTIONS else "answer"

    def open_requests(self) -> dict[str, JSONObject]:
        """Return the questions that the client has to answer, by key, in the order in which they were opened."""
        return dict(self._open)

    def open_fingerprints(self) -> dict[str, str]:
        """Return the fingerprints of the open questions, by key, for the sealed state."""
        return {key: self._asked[key].fingerprint for key in self._open}

    def ask(self, question: WireQuestion) -> Outcome:
        """Return what the function gets for a question, or open it for the client; DeveloperError for a broken rule."""
        key = question.key
        _check_text(key, question.request)
        fingerprint = input_requests.fingerprint(question.request)
        asked = self._asked.setdefault(key, AskedQuestion(fingerprint))
        _check_repetition(key, fingerprint, asked)
        asked.times_asked += 1
        if question.read_once and asked.times_asked > 1:
            self._record.drop_answer(key, fingerprint)  # the first call has used it
        response = self._find_response(key, fingerprint)
        if response is not None:
            asked.has_response = True
            return self._read(question, fingerprint, response)
        self._open.setdefault(key, question.request)  # an open one may say what was invalid
        return OPEN

    def _find_response(self, key: str, fingerprint: str) -> JSONObject | None:
        """Return the recorded response to a question; None if the client has to answer first.

        Responses to other texts under the key stay in the record, because two deployed versions may take turns.
        """
        responses = self._record.answers.get(key, {})
        if fingerprint not in responses and len(responses) > MAX_MESSAGE_CHANGES:
            rule = (
                "the question {key!r} says something else in every round, so no answer ever belongs to it: "
                "make its message from the arguments and from recorded values (step, step.now()), not from a clock"
            )
            raise DeveloperError(rule, key=key)
        return responses.get(fingerprint)

    def _read(self, question: WireQuestion, fingerprint: str, response: JSONObject) -> Outcome:
        """Read a recorded response. If it does not fit the question, drop it, and open the question with the reason."""
        key = question.key
        try:
            answer = question.read(copy_json(response))  # the author's code may change it
        except InvalidAnswer as invalid:
            self._record.drop_answer(key, fingerprint)
            if key in self.actions:
                self.actions[key] = "invalid"
            self._open[key] = input_requests.with_reason(question.request, str(invalid))
            return OPEN
        except Exception as error:  # noqa: BLE001 - `Round.ask` raises it once all are answered
            return Outcome(error=error)
        self._record.answers[key][fingerprint] = input_requests.requested_part(question.request, response)
        return Outcome(answer)

    def open_low_level(self, key: str, request: JSONObject) -> None:
        """Open a question of a low-level function, and drop the answers under the same key."""
        _check_text(key, request)
        self._asked[key] = AskedQuestion(input_requests.fingerprint(request))
        self._open[key] = request
        self._record.answers.pop(key, None)

    def count_lost_answer(self) -> None:
        """Count this round if its function asked an answered question again, under another key.

        The round calls this at its end, when it knows which answers the function has read.

        Raises:
            DeveloperError: too many rounds in a row did this, so the function changes the key in every round.
        """
        renamed = self._find_renamed_key()
        self._record.lost_answers = self._record.lost_answers + 1 if renamed else 0
        if renamed and self._record.lost_answers > MAX_KEY_CHANGES:
            rule = (
                "a question's key must be the same in every round: the answer to {old!r} was never read, and {new!r} "
                "asks the same again; make keys from the arguments, answers and recorded values (step, step.uuid()), "
                "not at random or from a clock"
            )
            raise DeveloperError(rule, old=renamed[0], new=renamed[1])

    def _find_renamed_key(self) -> tuple[str, str] | None:
        """Return the old and the new key of a question that was answered under the old one; None if there is none."""
        read = {asked.fingerprint for asked in self._asked.values() if asked.has_response}
        for old in self.actions:
            fingerprint = self.asked_before[old]
            if fingerprint in read:
                continue
            for new in self._open:
                if self._asked[new].fingerprint == fingerprint and self._is_new(new):
                    return old, new
        return None

    def _is_new(self, key: str) -> bool:
        """Tell whether no earlier round asked under a key. A low-level function may rename its keys, so it has none."""
        is_low_level = self._asked[key].times_asked == 0
        return not is_low_level and key not in self.asked_before and key not in self._record.answers


def _check_repetition(key: str, fingerprint: str, asked: AskedQuestion) -> None:
    """Refuse a key that has another question in this round, and a question that is asked without end."""
    if asked.fingerprint != fingerprint:
        rule = "two different questions under the key {key!r}: give each question a key of its own"
        raise DeveloperError(rule, key=key)
    if asked.times_asked >= MAX_TIMES_ASKED:
        rule = (
            "the question {key!r} is asked over and over in one round, but an answer stays as it is: "
            "give it a key of its own each time round a loop"
        )
        raise DeveloperError(rule, key=key)


def _check_text(key: object, request: JSONObject) -> None:
    """Refuse a key or message that is not text: JSON would write 3 as "3", which the next round cannot find."""
    for part, value in (("key", key), ("message", input_requests.message_of(cast("InputRequest", request)))):
        if not isinstance(value, str):
            rule = "a question's {part} is text, and not of type {type}"
            raise DeveloperError(rule, part=part, type=type(value).__name__)
