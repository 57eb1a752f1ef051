"""The questions of one round: which ones have an answer, and which ones the client has to answer next.

A handler runs from its first line in every round, so it asks the same questions again. A question is known by its key
and its fingerprint, a digest of the request that the client gets. A response counts only if the sealed state shows that
the previous round asked this question. All responses that count go into the record before the handler runs:

    from the sealed state    {"seat": "f1"}                             the previous round asked "seat", with this text
    from the client          {"seat": {"action": "accept", …}}          its response
    in the record            {"seat": {"f1": {"action": "accept", …}}}  a response for each text of "seat"

Each question of the handler then ends in one of four ways:

    response in the record        what the round does                         outcome for the handler
    none                          opens the question: the client gets it      the round ends
    `read` returns a value        keeps the fields that the form asked for    the answer
    `read` raises InvalidAnswer   drops it, and opens the question again      the round ends
    `read` raises another error   keeps it: the user declined, for example    the error

A DeveloperError stops a handler that would never get its answer, or that of another question:

    SHARED_KEY          two texts under one key, in one round
    ENDLESS_LOOP        one question too often, in one round
    CHANGING_MESSAGE    another text under the same key, in every round
    CHANGING_KEY        the same text under another key, in every round
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.json_reader import copy_json
from mcp_functions.rounds import input_requests
from mcp_functions.schemas.forms import InvalidAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.wire_types import JSONObject
    from mcp_functions.rounds.asking import WireQuestion
    from mcp_functions.rounds.record import Record

MAX_MESSAGE_CHANGES = 2  # a price in a message may change once or twice, but a clock changes in every round
MAX_KEY_CHANGES = 1  # a deployment may rename a key once, but a random key changes in every round
MAX_CALLS = 10_000  # stops a handler that asks in a loop until the answer changes: in one round it never changes
ACTIONS = ("accept", "decline", "cancel")

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


class Questions:
    """The questions that the handler asks in one round. The lock of the round guards them.

    Attributes:
        asked_before: the fingerprints of the previous round's questions by key, as the sealed state proves them.
        actions: the user's actions in this request by key, as AuditRecord has them.
        open_requests: the questions that the client has to answer, by key.
    """

    def __init__(self, record: Record, asked_before: Mapping[str, str], responses: Mapping[str, JSONObject]) -> None:
        """Record all responses at once, for the next round: this one may end before the handler reads them."""
        self.asked_before = asked_before
        self.actions: dict[str, str] = {}
        self.open_requests: dict[str, JSONObject] = {}
        self._record = record
        self._fingerprints: dict[str, str] = {}  # the fingerprints of this round's questions, by key
        self._calls: Counter[str] = Counter()  # how often the handler asked, by key
        self._read: set[str] = set()  # the fingerprints of the questions whose response was read
        self._record_responses(responses)

    def _record_responses(self, responses: Mapping[str, JSONObject]) -> None:
        """Record the responses to the previous round's questions. A later response never replaces an earlier one."""
        for key, fingerprint in self.asked_before.items():
            answers = self._record.answers.get(key, {})
            if key in responses and fingerprint not in answers:
                self._record.answers[key] = {**answers, fingerprint: responses[key]}
                action = responses[key].get("action")
                self.actions[key] = action if action in ACTIONS else "answer"

    def answer(self, question: WireQuestion) -> object:
        """Return the answer to a question, or the exception that the handler gets in its place.

        A question without an answer is in `open_requests` afterwards.

        Raises:
            DeveloperError: the question breaks a rule.
        """
        key = question.key
        request = question.request
        _check_text(key, request)
        fingerprint = input_requests.fingerprint(request)
        self._count_call(key, fingerprint)
        if question.read_once and self._calls[key] > 1:
            # The answer to `elicit.url`, for example, counts for one call: the first call has used it.
            self._record.drop_answer(key, fingerprint)
        if fingerprint in self._record.answers.get(key, {}):
            return self._read_response(question, fingerprint)
        # The answers to earlier texts stay in the record, because two deployed versions may take turns.
        earlier_answers = self._record.answers.get(key, {})
        if len(earlier_answers) > MAX_MESSAGE_CHANGES:
            raise DeveloperError(CHANGING_MESSAGE, key=key)
        self.open_requests.setdefault(key, request)
        return None

    def open_low_level(self, key: str, request: JSONObject) -> None:
        """Open a question of a low-level function, and drop the answers under the same key."""
        _check_text(key, request)
        self._fingerprints[key] = input_requests.fingerprint(request)
        self.open_requests[key] = request
        self._record.answers.pop(key, None)

    def open_fingerprints(self) -> dict[str, str]:
        """Return the fingerprints of the open questions, by key."""
        return {key: self._fingerprints[key] for key in self.open_requests}

    def check_keys(self) -> None:
        """Count, at the end of a round, the rounds in a row whose handler did not read an answer but asked again.

        Raises:
            DeveloperError: there are too many of them.
        """
        renamed = self._find_renamed_key()
        self._record.lost_answers = self._record.lost_answers + 1 if renamed else 0
        if renamed and self._record.lost_answers > MAX_KEY_CHANGES:
            old, new = renamed
            raise DeveloperError(CHANGING_KEY, old=old, new=new)

    def _find_renamed_key(self) -> tuple[str, str] | None:
        """Find a response that nothing has read, and a new key with the same text; return the old and the new key."""
        for old in self.actions:
            fingerprint = self.asked_before[old]
            if fingerprint in self._read:
                continue
            for new in self.open_requests:
                is_new = new not in self.asked_before and new not in self._record.answers
                is_by_handler = self._calls[new] > 0  # a low-level function may rename its keys
                if is_new and is_by_handler and self._fingerprints[new] == fingerprint:
                    return old, new
        return None

    def _count_call(self, key: str, fingerprint: str) -> None:
        """Refuse two questions under one key, and a question that is asked without end."""
        if self._fingerprints.setdefault(key, fingerprint) != fingerprint:
            raise DeveloperError(SHARED_KEY, key=key)
        self._calls[key] += 1
        if self._calls[key] > MAX_CALLS:
            raise DeveloperError(ENDLESS_LOOP, key=key)

    def _read_response(self, question: WireQuestion, fingerprint: str) -> object:
        """Read the response in the record. If it does not fit the question, drop it and open the question again."""
        key = question.key
        response = self._record.answers[key][fingerprint]
        self._read.add(fingerprint)
        try:
            outcome = question.read(copy_json(response))  # a copy: the author's code may change what it reads
        except InvalidAnswer as invalid:
            self._record.drop_answer(key, fingerprint)
            if key in self.actions:
                self.actions[key] = "invalid"
            self.open_requests[key] = input_requests.repeat_request(question.request, str(invalid))
            return None
        except Exception as error:  # noqa: BLE001 - `Round.ask` raises it once every question of the call is answered
            return error
        self._record.answers[key][fingerprint] = input_requests.without_extra_fields(question.request, response)
        return outcome


def _check_text(key: object, request: JSONObject) -> None:
    """Refuse a key or message that is not text: JSON would write 3 as "3", which the next round cannot find."""
    for part, value in (("key", key), ("message", input_requests.message_of(request))):
        if not isinstance(value, str):
            raise DeveloperError(NOT_TEXT, part=part, type=type(value).__name__)
