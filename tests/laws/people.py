"""What answers a question at the client: a person, a model or a file system.

A seed and the question determine each answer, so the same question always gets the same answer.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from tests.laws.services import SERVICES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

REASON_TO_ASK_AGAIN = re.compile(r" \(Please answer again: .*\)$", re.DOTALL)
ACTIONS = ("accept", "accept", "accept", "accept", "accept", "accept", "decline", "cancel")


def message_of(request: dict[str, Any]) -> str:
    """Return the message of a question, without the reason why the server repeats it."""
    return REASON_TO_ASK_AGAIN.sub("", str(request.get("params", {}).get("message", request["method"])))


class Person:
    """Answers questions, each always in the same way."""

    def __init__(self, seed: int, *, may_decline: bool = True) -> None:
        """Take the seed of the answers; with `may_decline`, two of eight questions are declined or cancelled."""
        self._seed = seed
        self._may_decline = may_decline

    def answer(self, key: str, request: dict[str, Any]) -> dict[str, Any]:
        message = message_of(request)
        match request:
            case {"method": "roots/list"}:
                return {"roots": [{"uri": f"file:///{self._draw(key, message)}"}]}
            case {"method": "sampling/createMessage", "params": {"messages": [{"content": {"text": prompt}}]}}:
                text = f"{prompt}: {self._draw(key, prompt)}"
                return {"role": "assistant", "content": {"type": "text", "text": text}, "model": "a-model"}
        action = ACTIONS[self._draw(key, message, "action") % len(ACTIONS)] if self._may_decline else "accept"
        if action != "accept":
            return {"action": action}
        if request["params"]["mode"] == "url":
            return {"action": "accept"}
        fields = request["params"]["requestedSchema"]["properties"]
        content = {name: self._fill(field, key, message, name) for name, field in fields.items()}
        return {"action": "accept", "content": {**content, "surprise": "a field that the form lacks"}}

    def _fill(self, field: dict[str, Any], *parts: str) -> Any:  # noqa: ANN401 - JSON
        """Return a value for a field of a form; the parts are the key, the message and the field's name."""
        number = self._draw(*parts)
        match field:
            case {"enum": choices}:
                return choices[number % len(choices)]
            case {"type": "boolean"}:
                return number % 4 > 0
            case {"type": "integer"}:
                low = field.get("minimum", 0)
                high = field.get("maximum", 9)
                return low + number % (high - low + 1)
            case {"format": "date"}:
                return f"2027-0{1 + number % 9}-11"
            case {"type": "array", "items": {"enum": choices}}:
                return choose_some(choices, number)
        return f"{parts[-1]}-{number % 1000}"

    def _draw(self, *parts: str) -> int:
        """Return a number that the seed and these parts of the question determine."""
        text = "\0".join([str(self._seed), *parts])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")


def choose_some(items: Iterable[str], number: int) -> list[str]:
    """Return the items whose bit is set in the number: 5 = 0b101 chooses the first and the third."""
    return [item for place, item in enumerate(items) if number >> place & 1]


def open_pages(questions: Mapping[str, Any], answers: Mapping[str, Any]) -> None:
    """Visit the pages that the answers agree to open (elicitation in mode url)."""
    for key, request in questions.items():
        if request["params"].get("mode") == "url" and answers.get(key) == {"action": "accept"}:
            SERVICES.page_visits[request["params"]["url"]] += 1


MALFORMED: list[dict[str, Any]] = [
    {},
    {"action": "maybe"},
    {"action": "accept"},
    {"action": "accept", "content": None},
    {"action": "accept", "content": ["name"]},
    {"action": "accept", "content": {"name": {"first": "Ann"}, "ok": "yes", "n": 99, "choice": "plaid", "day": "soon"}},
    {"roots": "file:///", "role": "nobody", "content": 7, "model": None},
    {"action": ["accept"], "content": {}},
]


def malformed_answer(number: int, question: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer that the question does not allow."""
    answer = MALFORMED[number % len(MALFORMED)]
    if question["params"].get("mode") == "url" and answer == {"action": "accept"}:
        return {}  # a page needs no content, so this answer would open it
    return answer
