"""The questions of one round: which ones have an answer, and which ones the client has to answer next.

A handler runs from its first line in every round, so it asks the same questions again. A response counts only if the
sealed state shows that the round before asked exactly this question, by key and fingerprint. The record has these
responses, and each question ends in one of four ways:

    response in the record        what the round does                         outcome
    no response                   sends the question to the client            open
    `read` returns a value        keeps the fields that the form asked for    the answer
    `read` raises InvalidAnswer   drops it, asks again and says why           open
    `read` raises another error   keeps it: the user declined, for example    the error

A handler that asks the same under a new key or in new words never gets its answer. The limits below stop it with a
DeveloperError.
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
MAX_READINGS = 10_000  # an answer does not change in a round, so a handler that reads it so often waits in vain

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
    read_once: bool = False  # True if the second call of a round drops the answer, so that the user is asked again


class QuestionState:
    """The state of the question under one key, in this round.

    Attributes:
        fingerprint: a digest of the request.
        request: the request for the client, while the question is open.
        readings: how often the handler asked; 0 for a question of a low-level function.
        is_answered: True if the handler gets an answer, or an error in its place.
        answer: what `read` returned.
        error: what `read` raised.
    """

    def __init__(self, digest: str, request: InputRequest | None = None) -> None:
        """Take the fingerprint, and the request if the question is open from the beginning."""
        self.fingerprint = digest
        self.request = request
        self.readings = 0
        self.is_answered = False
        self.answer: Any = None
        self.error: Exception | None = None


class Questions:
    """The questions that the handler asks in one round. Its caller holds the lock of the record."""

    def __init__(self, record: Record, responses: Mapping[str, JSONObject]) -> None:
        """Record the responses before the handler runs: then no response is lost if the round ends early."""
        self.actions = record.add_responses(responses)  # the user's actions by key, as AuditRecord has them
        self.has_renamed_key = False  # set by `check_keys`, when the round has ended
        self._record = record
        self._states: dict[str, QuestionState] = {}

    def read(self, question: WireQuestion) -> QuestionState:
        """Read the answer to a question, or open the question.

        Raises:
            DeveloperError: the question breaks a rule.
        """
        key = question.key
        request = question.request
        _check_text(key, message_of(request))
        state = self._register_reading(question)
        answers = self._record.answers[key]
        if state.fingerprint not in answers:
            # Each text of a question has its own answer, so the number of answers is the number of texts. Answers to an
            # earlier text stay: rounds may alternate between two deployed versions, and each finds its own answer.
            if len(answers) > MAX_MESSAGE_CHANGES:
                raise DeveloperError(CHANGING_MESSAGE, key=key)
            state.request = request
            return state
        response = answers[state.fingerprint]
        try:
            state.answer = question.read(copy_json(response))  # a copy: the author's code may change what it reads
            answers[state.fingerprint] = _without_extra_fields(request, response)
        except InvalidAnswer as invalid:
            del answers[state.fingerprint]
            if key in self.actions:
                self.actions[key] = "invalid"
            state.request = repeat_request(request, str(invalid))
        except Exception as error:  # noqa: BLE001 - `Round.ask` raises it once every question of the call is answered
            state.error = error
        state.is_answered = state.request is None
        return state

    def open_low_level(self, key: str, request: InputRequest) -> None:
        """Open a question of a low-level function, and drop the answers under the same key."""
        _check_text(key, message_of(request))
        self._states[key] = QuestionState(fingerprint(request), request)
        self._record.answers.pop(key, None)

    def open_requests(self) -> dict[str, InputRequest]:
        """Return the open questions, by key."""
        return {key: state.request for key, state in self._states.items() if state.request}

    def open_fingerprints(self) -> dict[str, str]:
        """Return the fingerprints of the open questions, by key."""
        return {key: state.fingerprint for key, state in self._states.items() if state.request}

    def check_keys(self) -> None:
        """Refuse a question whose key changes in every round, because no round would ever read its answer."""
        read = {state.fingerprint for state in self._states.values() if state.is_answered}
        # The client answered these questions, but the handler did not ask them: fingerprint -> key.
        unread_keys = {self._record.asked[key]: key for key in self.actions if key not in self._states}
        for key, state in self._states.items():
            has_unread_answer = state.fingerprint in unread_keys and state.fingerprint not in read
            if not has_unread_answer or not self._is_first_asked(key, state):
                continue
            self.has_renamed_key = True
            if self._record.key_changes >= MAX_KEY_CHANGES:
                raise DeveloperError(CHANGING_KEY, old=unread_keys[state.fingerprint], new=key)

    def _register_reading(self, question: WireQuestion) -> QuestionState:
        """Count a reading of a question. A key belongs to one question in a round, and is not read without end."""
        key = question.key
        digest = fingerprint(question.request)
        state = self._states.setdefault(key, QuestionState(digest))
        if state.fingerprint != digest:
            raise DeveloperError(SHARED_KEY, key=key)
        state.readings += 1
        answers = self._record.answers.setdefault(key, {})
        if question.read_once and state.readings > 1:
            answers.pop(digest, None)
        if state.readings > MAX_READINGS:
            raise DeveloperError(ENDLESS_LOOP, key=key)
        return state

    def _is_first_asked(self, key: str, state: QuestionState) -> bool:
        """Check whether the handler opened a question that no earlier round has asked."""
        is_opened_by_handler = state.request is not None and state.readings > 0
        return is_opened_by_handler and key not in self._record.asked and not self._record.answers[key]


def _check_text(key: object, message: object) -> None:
    """Refuse a key or message that is not text: JSON would write 3 as "3", which the next round cannot find."""
    for part, value in {"key": key, "message": message}.items():
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
