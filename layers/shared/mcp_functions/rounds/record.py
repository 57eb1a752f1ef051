"""The record of a conversation: the JSON that one round leaves for the next one, inside the sealed state.

A question has several answers if its text changed between two rounds, for example because a new version was deployed.
So the answers to "Who?" and to its new text "Your name?" are

    {"who": {"<fingerprint of Who?>": {"action": "accept", …}, "<fingerprint of Your name?>": {…}}}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict, cast

from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.wire_types import JSONObject


class RecordJSON(TypedDict, total=False):
    """The record as JSON. A member without a value is absent."""

    answers: dict[str, dict[str, JSONObject]]  # by the question's key, and by its fingerprint
    steps: dict[str, list[Any]]  # the recorded steps by key (`RecordedStep.to_json`)
    sheds: int  # how many rounds in a row ended without a question, because their time was up
    began: int  # when the conversation began, in unix milliseconds; absent until a step needs it
    lost_answers: int  # how many rounds in a row asked an answered question under another key
    progress: float  # the highest progress that the client got
    state: str  # JSON that a low-level function keeps


class RecordedStep(NamedTuple):
    """A step that ran. In the JSON it is a list of these values, without the last one if it is True."""

    arguments_digest: str  # the result counts only for a call with the same arguments
    result: Any  # as JSON
    milliseconds: int  # how long the step ran
    fits: bool = True  # whether the result could be read as the function's return annotation says

    def to_json(self) -> list[Any]:
        """Return the step as JSON."""
        *values, fits = self
        return values if fits else [*values, fits]


class Record:
    """The record as Python values, which a round changes while the author's function runs.

    The lock of the round guards it, because the function may use several threads.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        """Copy the JSON of the previous round, a RecordJSON, which stays as it is."""
        self.answers: dict[str, dict[str, JSONObject]] = {
            key: dict(answers) for key, answers in document.get("answers", {}).items()
        }
        self.steps = {key: RecordedStep(*step) for key, step in document.get("steps", {}).items()}
        self.sheds: int = document.get("sheds", 0)
        self.began: int | None = document.get("began")
        self.lost_answers: int = document.get("lost_answers", 0)
        self.progress: float | None = document.get("progress")
        self.state: str | None = document.get("state")

    def drop_answer(self, key: str, fingerprint: str) -> None:
        """Forget the answer to a question, if it has one."""
        answers = self.answers.get(key, {})
        answers.pop(fingerprint, None)
        if not answers:
            self.answers.pop(key, None)

    def to_json(self, sheds: int) -> RecordJSON:
        """Return the record for the next round, as JSON. `sheds` counts this round, too."""
        members = {
            "answers": {key: dict(answers) for key, answers in self.answers.items()} or None,
            "steps": {key: step.to_json() for key, step in self.steps.items()} or None,
            "sheds": sheds or None,
            "began": self.began,
            "lost_answers": self.lost_answers or None,
            "progress": self.progress,
            "state": self.state,
        }
        return cast("RecordJSON", {name: value for name, value in members.items() if value is not None})
