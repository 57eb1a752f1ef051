"""The questions that an author's function asks in one round: which ones have an answer, and which ones the client gets.

A call that asks takes several requests, and a round is one of them. The function runs from its first line in every
round, so it asks the same questions again:

    round 1    elicit("seat", "Which seat?", Seat)    no answer yet: the round ends, and the client gets the question
    round 2    elicit("seat", "Which seat?", Seat)    the request brought the answer, and the function gets it

A question is known by its key and its fingerprint, a digest of the JSON that the client gets. A response counts only if
the previous round asked this question. The sealed state shows that, because no client can change it:

    in the sealed state      {"seat": "f1"}                             the question of round 1, by its fingerprint
    from the client          {"seat": {"action": "accept", …}}          its response
    then in the record       {"seat": {"f1": {"action": "accept", …}}}  the response, for this and all later rounds
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.json_reader import copy_json
from mcp_functions.rounds import input_requests
from mcp_functions.schemas.forms import InvalidAnswer
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.wire_types import JSONObject
    from mcp_functions.rounds.asking import WireQuestion
    from mcp_functions.rounds.record import Record

# A new version of a function may change a question between two rounds. If it changes more often, its key or its message
# comes from a clock or from chance, and the function would never get an answer.
MAX_MESSAGE_CHANGES = 2
MAX_KEY_CHANGES = 1
MAX_TIMES_ASKED = 10_000  # in one round, where an answer never changes: so a loop that waits for another one never ends
ACTIONS = ("accept", "decline", "cancel")

# The rules for authors.
NOT_TEXT = "a question's {part} is text, and not of type {type}"
SHARED_KEY = "two different questions under the key {key!r}: give each question a key of its own"
ENDLESS_LOOP = (
    "the question {key!r} is asked over and over in one round, but an answer stays as it is: "
    "give it a key of its own each time round a loop"
)
CHANGING_MESSAGE = (
    "the question {key!r} says something else in every round, so no answer ever belongs to it: "
    "make its message from the arguments and from recorded values (step, step.now()), not from a clock"
)
CHANGING_KEY = (
    "a question's key must be the same in every round: the answer to {old!r} was never read, and {new!r} "
    "asks the same again; make keys from the arguments, answers and recorded values (step, step.uuid()), "
    "not at random or from a clock"
)


class Outcome(NamedTuple):
    """What the author's function gets for a question: the answer, or an exception in its place."""

    answer: object = None
    error: Exception | None = None  # the user declined, for example


class Questions:
    """The questions of one round. The lock of the round guards them, because a function may use several threads.

    Attributes:
        asked_before: the fingerprints of the previous round's questions by key, from the sealed state.
        actions: the user's actions in this request by key, as AuditRecord has them.
        open_requests: the questions that the client has to answer, by key.
    """

    def __init__(self, record: Record, asked_before: Mapping[str, str], responses: Mapping[str, JSONObject]) -> None:
        """Record all responses at once, for the next round: this one may end before the function asks for them."""
        self.asked_before = asked_before
        self.actions: dict[str, str] = {}
        self.open_requests: dict[str, JSONObject] = {}
        self._record = record
        self._fingerprints: dict[str, str] = {}  # of this round's questions, by key
        self._times_asked: Counter[str] = Counter()  # by key
        self._answered: set[str] = set()  # the fingerprints of the questions whose response the function has read
        self._record_responses(responses)

    def _record_responses(self, responses: Mapping[str, JSONObject]) -> None:
        """Record the responses to the previous round's questions. A later response never replaces an earlier one."""
        for key, fingerprint in self.asked_before.items():
            recorded = self._record.answers.get(key, {})
            if key in responses and fingerprint not in recorded:
                self._record.answers[key] = {**recorded, fingerprint: responses[key]}
                action = responses[key].get("action")
                self.actions[key] = action if action in ACTIONS else "answer"

    def find_outcome(self, question: WireQuestion) -> Outcome | None:
        """Return what the author's function gets for a question; None if the client has to answer it first.

        Raises:
            DeveloperError: the question breaks a rule.
        """
        key = question.key
        _check_text(key, question.request)
        fingerprint = input_requests.fingerprint(question.request)
        self._check_question(key, fingerprint)
        if question.read_once and self._times_asked[key] > 1:
            self._record.drop_answer(key, fingerprint)  # the first call of this round has used the answer
        recorded = self._record.answers.get(key, {})
        if fingerprint in recorded:
            return self._read_response(question, fingerprint)
        # Responses to other texts stay in the record, because two deployed versions may take turns.
        if len(recorded) > MAX_MESSAGE_CHANGES:
            raise DeveloperError(CHANGING_MESSAGE, key=key)
        self.open_requests.setdefault(key, question.request)
        return None

    def open_low_level(self, key: str, request: JSONObject) -> None:
        """Open a question of a low-level function, and drop the answers under the same key."""
        _check_text(key, request)
        self._fingerprints[key] = input_requests.fingerprint(request)
        self.open_requests[key] = request
        self._record.answers.pop(key, None)

    def open_fingerprints(self) -> dict[str, str]:
        """Return the fingerprints of the open questions, by key, for the sealed state."""
        return {key: self._fingerprints[key] for key in self.open_requests}

    def check_keys(self) -> None:
        """Check, at the end of a round, that the function does not change a key in every round.

        Raises:
            DeveloperError: in too many rounds in a row, it left an answer unread and asked the same under a new key.
        """
        renamed = self._find_renamed_key()
        if renamed is None:
            self._record.lost_answers = 0
            return
        self._record.lost_answers += 1
        if self._record.lost_answers > MAX_KEY_CHANGES:
            old, new = renamed
            raise DeveloperError(CHANGING_KEY, old=old, new=new)

    def _find_renamed_key(self) -> tuple[str, str] | None:
        """Return the old and the new key of a question that was answered under the old one; None if there is none."""
        for old in self.actions:
            fingerprint = self.asked_before[old]
            if fingerprint in self._answered:
                continue
            for new in self.open_requests:
                is_new = new not in self.asked_before and new not in self._record.answers
                is_low_level = self._times_asked[new] == 0  # a low-level function may rename its keys
                if is_new and not is_low_level and self._fingerprints[new] == fingerprint:
                    return old, new
        return None

    def _check_question(self, key: str, fingerprint: str) -> None:
        """Count a question; refuse another question under the same key, and one that is asked without end."""
        if self._fingerprints.setdefault(key, fingerprint) != fingerprint:
            raise DeveloperError(SHARED_KEY, key=key)
        self._times_asked[key] += 1
        if self._times_asked[key] > MAX_TIMES_ASKED:
            raise DeveloperError(ENDLESS_LOOP, key=key)

    def _read_response(self, question: WireQuestion, fingerprint: str) -> Outcome | None:
        """Read the response in the record. If it does not fit the question, drop it and ask again."""
        key = question.key
        response = self._record.answers[key][fingerprint]
        self._answered.add(fingerprint)
        try:
            answer = question.read(copy_json(response))  # a copy: the author's code may change what it reads
        except InvalidAnswer as invalid:
            self._record.drop_answer(key, fingerprint)
            if key in self.actions:
                self.actions[key] = "invalid"
            self.open_requests[key] = input_requests.repeat_request(question.request, str(invalid))
            return None
        except Exception as error:  # noqa: BLE001 - `Round.ask` raises it once every question of the call is answered
            return Outcome(error=error)
        self._record.answers[key][fingerprint] = input_requests.without_extra_fields(question.request, response)
        return Outcome(answer)


def _check_text(key: object, request: JSONObject) -> None:
    """Refuse a key or message that is not text: JSON would write 3 as "3", which the next round cannot find."""
    for part, value in (("key", key), ("message", input_requests.message_of(request))):
        if not isinstance(value, str):
            raise DeveloperError(NOT_TEXT, part=part, type=type(value).__name__)
