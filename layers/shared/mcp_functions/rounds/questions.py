"""The questions of one round: which ones have an answer, and which ones the client has to answer next.

A handler runs from its first line in every round, so it asks the same questions again. A response of the client counts
only if the sealed state shows that the previous round asked exactly this question, by key and fingerprint (a digest of
its text). Such a response goes into the record before the handler runs. Each question then ends in one of four ways:

    response in the record        what the round does                         outcome for the handler
    no response                   opens the question: the client gets it      the round ends
    `read` returns a value        keeps the fields that the form asked for    the answer
    `read` raises InvalidAnswer   drops it, and opens the question again      the round ends
    `read` raises another error   keeps it: the user declined, for example    the error

A handler that asks the same under a new key or in new words in every round would never get its answer. The limits below
stop it with a DeveloperError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.json_reader import copy_json
from mcp_functions.rounds.input_requests import fingerprint, message_of, repeat_request
from mcp_functions.schemas.forms import InvalidAnswer
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.protocol.wire_types import InputRequest, JSONObject
    from mcp_functions.rounds.record import Record

MAX_MESSAGE_CHANGES = 2  # a price in a message may change once or twice, but a clock changes in every round
MAX_KEY_CHANGES = 1  # a deployment may rename a key once, but a random key changes in every round
MAX_READINGS = 10_000  # stops a handler that loops until an answer changes, which never happens within a round
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


class WireQuestion(NamedTuple):
    """A question as the client gets it, and the function that reads the response.

    `read` returns the answer. It raises InvalidAnswer if the response does not fit the question, and any other
    exception if the handler should get that exception in place of an answer.
    """

    key: str  # the question's key in `inputRequests`
    request: InputRequest
    read: Callable[[JSONObject], object]
    # True if an answer counts for one call in a round, and a second call asks the user again: see `ElicitUrlRequest`.
    read_once: bool = False


class Questions:
    """The questions that the handler asks in one round. The lock of the round guards them.

    Attributes:
        asked_before: the fingerprints of the previous round's questions by key, as the sealed state proves them.
        actions: the user's actions in this request by key, as AuditRecord has them.
        open_requests: the questions that the client has to answer, by key.
    """

    def __init__(self, record: Record, asked_before: Mapping[str, str], responses: Mapping[str, JSONObject]) -> None:
        """Record the responses at once, so that none is lost if the round ends before the handler reads it."""
        self.asked_before = asked_before
        self.actions: dict[str, str] = {}
        self.open_requests: dict[str, InputRequest] = {}
        self._record = record
        self._fingerprints: dict[str, str] = {}  # of the questions of this round, by key
        self._readings: dict[str, int] = {}  # how often the handler asked, by key
        self._delivered: set[str] = set()  # the fingerprints of the questions whose answer the handler got
        for key, digest in asked_before.items():
            answers = record.answers.get(key, {})
            if key in responses and digest not in answers:  # a later response never replaces an earlier one
                record.answers[key] = {**answers, digest: responses[key]}
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
        _check_text(key, message_of(request))
        digest = fingerprint(request)
        self._count_reading(key, digest)
        if question.read_once and self._readings[key] > 1:
            self._record.drop_answer(key, digest)
        answers = self._record.answers.get(key, {})
        if digest not in answers:
            # Each earlier text of the question has its answer here, so their number is how often the text has changed.
            # They stay: rounds may alternate between two deployed versions, and each version finds its own answer.
            message_changes = len(answers)
            if message_changes > MAX_MESSAGE_CHANGES:
                raise DeveloperError(CHANGING_MESSAGE, key=key)
            self.open_requests.setdefault(key, request)
            return None
        response = answers[digest]
        try:
            outcome = question.read(copy_json(response))  # a copy: the author's code may change what it reads
        except InvalidAnswer as invalid:
            self._record.drop_answer(key, digest)
            if key in self.actions:
                self.actions[key] = "invalid"
            self.open_requests[key] = repeat_request(request, str(invalid))
            return None
        except Exception as error:  # noqa: BLE001 - `Round.ask` raises it once every question of the call is answered
            outcome = error
        else:
            answers[digest] = _without_extra_fields(request, response)
        self._delivered.add(digest)
        return outcome

    def open_low_level(self, key: str, request: InputRequest) -> None:
        """Open a question of a low-level function, and drop the answers under the same key."""
        _check_text(key, message_of(request))
        self._fingerprints[key] = fingerprint(request)
        self.open_requests[key] = request
        self._record.answers.pop(key, None)

    def open_fingerprints(self) -> dict[str, str]:
        """Return the fingerprints of the open questions, by key."""
        return {key: self._fingerprints[key] for key in self.open_requests}

    def find_renamed_key(self) -> tuple[str, str] | None:
        """Find an answered question that the handler asks again under another key; return the old and the new key.

        The old key has an answer in this request, and the handler did not ask it. No earlier round asked the new key.
        """
        for old in self.actions:
            digest = self.asked_before[old]
            if old in self._fingerprints or digest in self._delivered:
                continue
            for new in self.open_requests:
                is_new = new not in self.asked_before and new not in self._record.answers
                # `_readings` lacks the questions of a low-level function, which may rename its keys.
                if is_new and new in self._readings and self._fingerprints[new] == digest:
                    return old, new
        return None

    def _count_reading(self, key: str, digest: str) -> None:
        """Refuse two questions under one key, and a question that is read without end."""
        if self._fingerprints.setdefault(key, digest) != digest:
            raise DeveloperError(SHARED_KEY, key=key)
        self._readings[key] = self._readings.get(key, 0) + 1
        if self._readings[key] > MAX_READINGS:
            raise DeveloperError(ENDLESS_LOOP, key=key)


def _check_text(key: object, message: object) -> None:
    """Refuse a key or message that is not text: JSON would write 3 as "3", which the next round cannot find."""
    for part, value in (("key", key), ("message", message)):
        if not isinstance(value, str):
            raise DeveloperError(NOT_TEXT, part=part, type=type(value).__name__)


def _without_extra_fields(request: InputRequest, response: JSONObject) -> JSONObject:
    """Keep only the requested fields of a form's response: no round reads others, but every state would carry them.

    Other responses are returned unchanged.
    """
    params: Mapping[str, Any] = request.get("params", {})
    content = response.get("content")
    if "requestedSchema" not in params or "action" not in response or not isinstance(content, dict):
        return response
    fields = params["requestedSchema"]["properties"]
    requested = {name: value for name, value in content.items() if name in fields}
    return {"action": response["action"], "content": requested}
