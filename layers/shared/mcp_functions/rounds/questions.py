"""The questions of one round: which ones have an answer, and which ones the client has to answer next.

An answer counts only if the sealed state shows that exactly this question was asked, by key and fingerprint. Every
other response is asked for again.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import DeveloperError, InputRequired
from mcp_functions.protocol.json_reader import copy_json
from mcp_functions.rounds.input_requests import fingerprint, repeat_request
from mcp_functions.schemas.forms import InvalidAnswer
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.protocol.wire_types import InputRequest, JSONObject
    from mcp_functions.rounds.record import Record

# Limits for mistakes that would repeat a round without end.
MAX_MESSAGE_CHANGES = 2  # of one question: a price may change once or twice, but a clock changes in every round
MAX_KEY_CHANGES = 1  # in a row: a deployment may rename a key once, but a random key changes in every round
MAX_READINGS = 10_000  # of one answer in a round: only a loop that waits for another answer reads so often


class WireQuestion(NamedTuple):
    """A question as the client gets it, and the function that reads the response.

    `read` raises InvalidAnswer if the response does not fit; any other exception is the outcome of the question. With
    `read_once`, a second reading in the same round asks the question again.
    """

    key: str
    request: InputRequest
    read: Callable[[JSONObject], object]
    read_once: bool = False


class Outcome(NamedTuple):
    """The answer to a question, or the exception that its `read` raised, or neither while the question is open."""

    answer: Any = None
    error: Exception | None = None
    is_open: bool = False


class Questions:
    """The questions that the handler asks in one round."""

    has_renamed_key = False  # set by `check_keys`

    def __init__(self, record: Record, responses: Mapping[str, JSONObject]) -> None:
        """Record the responses before the handler runs: then no response is lost if the round ends early."""
        self.requests: dict[str, InputRequest] = {}  # the open questions, by key
        self.actions = record.add_responses(responses)  # of the user, by key, as AuditRecord has them
        self._record = record
        self._fingerprints: dict[str, str] = {}  # of every question of this round, by key
        self._answered: set[str] = set()  # fingerprints of the questions whose answers this round has used
        self._readings: Counter[str] = Counter()  # how often each key was asked
        self._closed = False

    def outcome(self, question: WireQuestion) -> Outcome:
        """Read the answer to a question, or open the question."""
        key, request = question.key, question.request
        check_text(key, "a question's key is text, and not of type {type}")
        check_text(message_of(request), "a question's message is text, and not of type {type}")
        digest = fingerprint(request)
        self._count_reading(question, digest)
        answers = self._record.answers[key]
        response = answers.get(digest)
        if response is None:
            return self._open(key, request)
        try:
            answer = question.read(copy_json(response))  # a copy: the author's code may change what it reads
        except InvalidAnswer as invalid:
            self._forget(key, digest)
            return self._open(key, repeat_request(request, str(invalid)))
        except Exception as error:  # noqa: BLE001 - `Round.ask` raises it once every question of the call is answered
            self._answered.add(digest)
            return Outcome(error=error)
        answers[digest] = _without_extra_fields(request, response)
        self._answered.add(digest)
        return Outcome(answer)

    def open_again(self, key: str, request: InputRequest) -> None:
        """Open a question of a low-level function, and drop the answers under the same key."""
        self.requests[key] = request
        self._fingerprints[key] = fingerprint(request)
        self._record.answers.pop(key, None)

    def open_fingerprints(self) -> dict[str, str]:
        """Return the fingerprints of the open questions, by key."""
        return {key: self._fingerprints[key] for key in self.requests}

    def close(self) -> None:
        """Let no other thread open a question from now on."""
        self._closed = True

    def check_keys(self) -> None:
        """Refuse a question whose key changes in every round, because no round would ever read its answer."""
        renamed = self._renamed_key()
        self.has_renamed_key = renamed is not None
        if renamed and self._record.key_changes >= MAX_KEY_CHANGES:
            rule = (
                "a question's key must be the same in every round: the answer to {old!r} was never read, and {new!r} "
                "asks the same again; make keys from the arguments, answers and recorded values (step, step.uuid()), "
                "not at random or from a clock"
            )
            raise DeveloperError(rule, old=renamed[0], new=renamed[1])

    def _renamed_key(self) -> tuple[str, str] | None:
        """Return the old and the new key of a question that was answered, and that this round asks again."""
        asked = self._record.asked
        unread = {asked[key]: key for key in self.actions if key not in self._fingerprints}
        for key in self.requests:
            digest = self._fingerprints[key]
            is_new = key in self._readings and key not in asked and not self._record.answers[key]
            if is_new and digest in unread and digest not in self._answered:
                return unread[digest], key
        return None

    def _count_reading(self, question: WireQuestion, digest: str) -> None:
        """Count a reading of a question. A key belongs to one question in a round, and is not read without end."""
        key = question.key
        with self._record.lock:
            if self._fingerprints.setdefault(key, digest) != digest:
                rule = "two different questions under the key {key!r}: give each question a key of its own"
                raise DeveloperError(rule, key=key)
            answers = self._record.answers.setdefault(key, {})
            self._readings[key] += 1
            if question.read_once and self._readings[key] > 1:
                answers.pop(digest, None)
            if self._readings[key] > MAX_READINGS:
                rule = (
                    "the question {key!r} is asked over and over in one round, but an answer stays as it is: "
                    "give it a key of its own each time round a loop"
                )
                raise DeveloperError(rule, key=key)

    def _forget(self, key: str, digest: str) -> None:
        """Drop an answer that does not fit."""
        with self._record.lock:
            self._record.answers[key].pop(digest, None)
            if key in self.actions:
                self.actions[key] = "invalid"

    def _open(self, key: str, request: InputRequest) -> Outcome:
        with self._record.lock:
            if self._closed:
                raise InputRequired
            # Answers to earlier wordings stay: two deployed versions may take turns, and each finds its own answer.
            if len(self._record.answers[key]) > MAX_MESSAGE_CHANGES:
                rule = (
                    "the question {key!r} says something else in every round, so no answer ever belongs to it: "
                    "make its message from the arguments and from recorded values (step, step.now()), not from a clock"
                )
                raise DeveloperError(rule, key=key)
            self.requests[key] = request
        return Outcome(is_open=True)


def check_text(value: object, rule: str) -> None:
    """Refuse a key or message that is not text: JSON would write 3 as "3", which the next round cannot find."""
    if not isinstance(value, str):
        raise DeveloperError(rule, type=type(value).__name__)


def message_of(request: InputRequest) -> str:
    """Return the message that the user reads, or the request's method if it has none."""
    message: str = request.get("params", {}).get("message", request["method"])
    return message


def _without_extra_fields(request: InputRequest, response: JSONObject) -> JSONObject:
    """Drop the fields that the form did not ask for: no round reads them, and every state would carry them."""
    params: Mapping[str, Any] = request.get("params", {})
    content = response.get("content")
    if "requestedSchema" not in params or "action" not in response or not isinstance(content, dict):
        return response
    fields = params["requestedSchema"]["properties"]
    requested = {name: value for name, value in content.items() if name in fields}
    return {"action": response["action"], "content": requested}
