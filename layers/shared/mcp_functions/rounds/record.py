"""The record of a conversation: the JSON that one round leaves for the next one, inside the sealed state.

A question has several answers if its text changed between two rounds, for example because a new version was deployed.
So the answers to "Who?" and to its new text "Your name?" are

    {"who": {"<fingerprint of Who?>": {"action": "accept", …}, "<fingerprint of Your name?>": {…}}}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.wire_types import JSONObject


class RecordJSON(TypedDict, total=False):
    """The record as JSON. A member without a value is absent.

    Attributes:
        answers: the client's responses, by the question's key and by its fingerprint (a digest of its text).
        steps: the recorded steps by key, each as the list of `RecordedStep.to_json`.
        sheds: how many rounds in a row ended without a question, because their time was up.
        began: when the conversation began, in unix milliseconds; absent until a step needs it.
        lost_answers: how many rounds in a row asked an answered question again, under another key.
        progress: the highest progress that the client got.
        state: JSON that a low-level function keeps.
    """

    answers: dict[str, dict[str, JSONObject]]
    steps: dict[str, list[Any]]
    sheds: int
    began: int
    lost_answers: int
    progress: float
    state: str


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
        answers: dict[str, dict[str, JSONObject]] = document.get("answers", {})
        self.answers = {key: dict(by_fingerprint) for key, by_fingerprint in answers.items()}
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
        document: RecordJSON = {}
        if self.answers:
            document["answers"] = {key: dict(answers) for key, answers in self.answers.items()}
        if self.steps:
            document["steps"] = {key: step.to_json() for key, step in self.steps.items()}
        if sheds:
            document["sheds"] = sheds
        if self.began is not None:
            document["began"] = self.began
        if self.lost_answers:
            document["lost_answers"] = self.lost_answers
        if self.progress is not None:
            document["progress"] = self.progress
        if self.state is not None:
            document["state"] = self.state
        return document
