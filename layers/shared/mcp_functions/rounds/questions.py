"""The questions of one round: which ones have an answer, and which ones the client has to answer next.

An answer counts only if the sealed state shows that exactly this question was asked, by key and fingerprint. Every
other response is asked for again.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.protocol.errors import DeveloperError, InputRequired
from mcp_functions.protocol.json_reader import copy_json
from mcp_functions.rounds.input_requests import fingerprint, repeat_request
from mcp_functions.schemas.forms import InvalidAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.protocol.wire_types import InputRequest, JSONObject
    from mcp_functions.rounds.record import Record

MAX_MESSAGE_CHANGES = 2  # a price may change once or twice; a clock in the message is refused at the fourth wording
MAX_LOST_ANSWERS = 1  # in a row: a deployment may rename a key once, a random key changes in every round
MAX_READINGS = 10_000  # of one answer in one round: only a loop that waits for another answer reads so often


class WireQuestion(NamedTuple):
    """A question as the client gets it, and the function that reads the response.

    `read` raises InvalidAnswer if the response does not fit; any other exception is the outcome of the question. With
    `once`, a second reading in the same round asks the question again.
    """

    key: str
    request: InputRequest
    read: Callable[[JSONObject], object]
    once: bool = False


class Outcome(NamedTuple):
    """The answer to a question, or the exception that its `read` raised, or neither while the question is open."""

    answer: Any = None
    error: Exception | None = None
    is_open: bool = False


class Questions:
    """The questions that the handler asks in one round.

    Attributes:
        requests: the questions that the client has to answer before the next round, by key.
        actions: what the user did with the questions of the previous round, by key, as AuditRecord has it.
        has_lost_answer: whether `check_keys` found an answered question under a new key.

    """

    has_lost_answer = False

    def __init__(self, record: Record, responses: Mapping[str, JSONObject]) -> None:
        """Record the responses before the handler runs, so that none is lost if the round ends early."""
        self.requests: dict[str, InputRequest] = {}
        self.actions = record.add_responses(responses)
        self._record = record
        self._fingerprints: dict[str, str] = {}  # of every question of this round, by key
        self._answered: set[str] = set()  # fingerprints of the questions whose answers this round has used
        self._readings = Counter[str]()  # how often each key was asked
        self._closed = False

    def outcome(self, question: WireQuestion) -> Outcome:
        """Read the answer to a question, or open the question."""
        key, request = question.key, question.request
        check_text(key, "a question's key is text, and not of type {type}")
        check_text(message_of(request), "a question's message is text, and not of type {type}")
        request_fingerprint = fingerprint(request)
        answers = self._answers(question, request_fingerprint)
        if request_fingerprint not in answers:
            return self._open(key, request)
        response = answers[request_fingerprint]
        try:
            answer = question.read(copy_json(response))  # a copy: the author's code may change what it reads
        except InvalidAnswer as invalid:
            self._forget(key, request_fingerprint)
            return self._open(key, repeat_request(request, str(invalid)))
        except Exception as error:  # noqa: BLE001 - `Round.ask` raises it once every question of the call is answered
            self._answered.add(request_fingerprint)
            return Outcome(error=error)
        answers[request_fingerprint] = _without_extra_fields(request, response)
        self._answered.add(request_fingerprint)
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
        """Refuse a question whose key changes in every round, because no round would ever read its answer.

        One lost answer may come from a deployment that renamed a key; a second one in a row does not.
        """
        lost = self._lost_answer()
        self.has_lost_answer = lost is not None
        if lost and self._record.lost_answers >= MAX_LOST_ANSWERS:
            rule = (
                "a question's key must be the same in every round: the answer to {old!r} was never read, and {new!r} "
                "asks the same again; make keys from the arguments, answers and recorded values (step, step.uuid()), "
                "not at random or from a clock"
            )
            raise DeveloperError(rule, old=lost[0], new=lost[1])

    def _lost_answer(self) -> tuple[str, str] | None:
        """Return the key of an answer that this round never read, and the new key of the same question.

        The round asked nothing under the old key, and read no answer to the same message and form.
        """
        asked = self._record.asked
        unread = {asked[key]: key for key in self.actions if key not in self._fingerprints}
        for key in self.requests:
            name = self._fingerprints[key]
            is_new = key in self._readings and key not in asked and not self._record.answers[key]
            if is_new and name in unread and name not in self._answered:
                return unread[name], key
        return None

    def _answers(self, question: WireQuestion, name: str) -> dict[str, Any]:
        """Count a reading of a question, and return the answers under its key, by fingerprint."""
        key = question.key
        with self._record.lock:
            if self._fingerprints.setdefault(key, name) != name:
                rule = "two different questions under the key {key!r}: give each question a key of its own"
                raise DeveloperError(rule, key=key)
            answers = self._record.answers.setdefault(key, {})
            self._readings[key] += 1
            if question.once and self._readings[key] > 1:
                answers.pop(name, None)
            if self._readings[key] > MAX_READINGS:
                rule = (
                    "the question {key!r} is asked over and over in one round, but an answer stays as it is: "
                    "give it a key of its own each time round a loop"
                )
                raise DeveloperError(rule, key=key)
            return answers

    def _forget(self, key: str, name: str) -> None:
        """Drop an answer that does not fit."""
        with self._record.lock:
            self._record.answers[key].pop(name, None)
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
