"""The answers of a person, a model and a file system at the client; a seed and the question determine each answer."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from tests.laws.world import WORLD

if TYPE_CHECKING:
    from collections.abc import Mapping

AGAIN = re.compile(r" \(Please answer again: .*\)$", re.DOTALL)
CHOICES = ("accept", "accept", "accept", "accept", "accept", "decline", "cancel", "accept")


def words(request: dict[str, Any]) -> str:
    """Return the text of a question, without the reason why the server repeats it."""
    return AGAIN.sub("", str(request.get("params", {}).get("message", request["method"])))


class Person:
    """Answers a question always in the same way; with `moods`, the answer may be a decline or a dismissal."""

    def __init__(self, seed: int, *, moods: bool = True) -> None:
        self._seed, self._moods = seed, moods

    def answer(self, key: str, request: dict[str, Any]) -> dict[str, Any]:
        said = words(request)
        match request:
            case {"method": "roots/list"}:
                return {"roots": [{"uri": f"file:///{self._draw(key, said)}"}]}
            case {"method": "sampling/createMessage", "params": {"messages": [{"content": {"text": asked}}]}}:
                text = f"{asked}: {self._draw(key, asked)}"
                return {"role": "assistant", "content": {"type": "text", "text": text}, "model": "a-model"}
        action = CHOICES[self._draw(key, said, "mood") % len(CHOICES)] if self._moods else "accept"
        if action != "accept":
            return {"action": action}
        if request["params"]["mode"] == "url":
            return {"action": "accept"}
        fields = request["params"]["requestedSchema"]["properties"]
        content = {name: self._fill(field, key, said, name) for name, field in fields.items()}
        return {"action": "accept", "content": {**content, "surprise": "nobody asked for this"}}

    def _fill(self, field: dict[str, Any], *where: str) -> Any:  # noqa: ANN401 - JSON
        drawn = self._draw(*where)
        match field:
            case {"enum": choices}:
                return choices[drawn % len(choices)]
            case {"type": "boolean"}:
                return drawn % 4 > 0
            case {"type": "integer"}:
                low, high = field.get("minimum", 0), field.get("maximum", 9)
                return low + drawn % (high - low + 1)
            case {"format": "date"}:
                return f"2027-0{1 + drawn % 9}-11"
            case {"type": "array", "items": {"enum": choices}}:
                return [choice for number, choice in enumerate(choices) if drawn >> number & 1]
        return f"{where[-1]}-{drawn % 1000}"

    def _draw(self, *parts: str) -> int:
        text = "\0".join([str(self._seed), *parts])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")


def open_pages(questions: Mapping[str, Any], answers: Mapping[str, Any]) -> None:
    """Open the pages that the person agreed to open."""
    for key, request in questions.items():
        if request["params"].get("mode") == "url" and answers.get(key) == {"action": "accept"}:
            WORLD.opened[request["params"]["url"]] += 1


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
