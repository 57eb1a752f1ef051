"""The record of a conversation: the JSON that each round reads from the sealed state and writes for the next round.

    answers         the client's responses, by the question's key and by its fingerprint (a digest of its text)
    steps           the recorded steps, by key: see `RecordedStep`
    sheds           how many rounds in a row ended without a question, because the time was up
    began           when the conversation began, in unix milliseconds
    lost_answers    how many rounds in a row asked an answered question again, under another key
    state           JSON that a low-level function keeps

A member without a value is absent.
"""

from __future__ import annotations

from threading import Condition
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.json_reader import copy_json
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

    from mcp_functions.protocol.wire_types import JSONObject

# A longer state is not read again when it is written, to save time. The check is for models that cannot be read at all,
# and a short state of such a model fails, too.
MAX_CHECKED_CHARS = 4096
ACTIONS = ("accept", "decline", "cancel")
EMPTY: Mapping[str, Any] = {}


class RecordedStep(NamedTuple):
    """A step that ran. The record has it as a list of these values."""

    arguments_digest: str
    result: Any
    milliseconds: int  # how long the step ran


class Record:
    """Answers, step results and counters. Handlers read copies, so a round cannot change what the next one reads."""

    def __init__(self, document: Mapping[str, Any], asked: Mapping[str, str]) -> None:
        """Read the JSON of the previous round, and the fingerprints of its questions by key."""
        self.lock = Condition()  # guards the record and the round: a handler may use several threads
        self.asked = asked
        self.is_new = not document and not asked  # no earlier round left a record
        # A question has several answers if its text changed between two rounds, or two deployed versions.
        self.answers = {key: dict(answers) for key, answers in document.get("answers", EMPTY).items()}
        self.steps = {key: RecordedStep(*step) for key, step in document.get("steps", EMPTY).items()}
        self.started_at: int | None = document.get("began")  # unix milliseconds; None until a step needs it
        self.sheds: int = document.get("sheds", 0)  # rounds in a row that ended without a question
        self.key_changes: int = document.get("lost_answers", 0)  # rounds in a row that renamed an answered question
        self.previous_state: str | None = document.get("state")  # JSON that a low-level function kept
        self.next_state: str | None = None

    def add_responses(self, responses: Mapping[str, JSONObject]) -> dict[str, str]:
        """Record every response to a question that the sealed state proves was asked; return the actions by key.

        All of them are recorded before the handler runs, so no response is lost if the round ends early.
        """
        actions = {}
        for key, fingerprint in self.asked.items():
            answers = self.answers.setdefault(key, {})
            if key in responses and fingerprint not in answers:  # a later response never replaces an earlier one
                answers[fingerprint] = responses[key]
                action = responses[key].get("action")
                actions[key] = action if action in ACTIONS else "answer"
        return actions

    def answered_keys(self) -> list[str]:
        """Return the keys of the questions that have an answer."""
        return [key for key, answers in self.answers.items() if answers]

    def last_answer(self, key: str) -> JSONObject:
        """Return a copy of the answer to a question; of a reworded question, the last answer."""
        answers = list(self.answers.get(key, EMPTY).values())
        if not answers:
            raise KeyError(key)
        answer: JSONObject = copy_json(answers[-1])
        return answer

    def step_result(self, key: str) -> object:
        """Return a copy of a recorded step's result."""
        return copy_json(self.steps[key].result)

    def longest_step(self) -> float:
        """Return the duration of the longest step so far, in seconds."""
        with self.lock:
            return max((step.milliseconds for step in self.steps.values()), default=0) / 1000

    def to_json(self, *, has_questions: bool, renamed_key: bool) -> dict[str, Any]:
        """Write the record for the next round.

        Args:
            has_questions: True if the client has to answer questions.
            renamed_key: True if this round asked an answered question under another key.
        """
        with self.lock:
            answers = {key: dict(by_fingerprint) for key, by_fingerprint in self.answers.items() if by_fingerprint}
            document = {
                "answers": answers or None,
                "steps": {key: list(step) for key, step in self.steps.items()} or None,
                "sheds": None if has_questions else self.sheds + 1,
                "began": self.started_at,
                "lost_answers": self.key_changes + 1 if renamed_key else None,
                "state": self.next_state,
            }
        return {name: value for name, value in document.items() if value is not None}


def write_state(state: BaseModel) -> str:
    """Write a model as JSON, and check that the next round can read it again."""
    options: Any = {"by_alias": True, "warnings": False}  # a warning would quote the state in the log
    try:
        text = state.model_dump_json(**options)
        if "null" in text:
            dumps(state.model_dump(mode="json", **options))  # raises for NaN, which pydantic writes as null
        if len(text) <= MAX_CHECKED_CHARS:
            type(state).model_validate_json(text, strict=False)
    except (TypeError, ValueError, LookupError, AttributeError):
        rule = "request_state: a {model} that holds this cannot be read again from the JSON that it writes"
        raise DeveloperError(rule, model=type(state).__name__) from None
    return text
