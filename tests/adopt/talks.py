"""The requests that tests send to the servers of tests/adopt/servers, and how their responses are compared."""

from __future__ import annotations

from typing import Any

MODES = {"2026-07-28": "2026-07-28", "2025-11-25": "legacy"}


def call(name: str, **arguments: object) -> tuple[str, dict[str, Any]]:
    return "call", {"name": name, "arguments": arguments}


def read(uri: str) -> tuple[str, dict[str, Any]]:
    return "read", {"uri": uri}


CALLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "bank": [
        call("balance", owner="Ada", cents="7"),
        call("balance", owner="A"),
        call("balance"),
        call("balance", owner="Ada", unknown=1),
        call("report"),
        call("picture"),
        call("refuse", reason="closed"),
        call("crash"),
        call("nothing"),
        read("bank://rates"),
        read("bank://branches/4"),
        read("bank://branches/x"),
        read("bank://files/a/b.txt"),
        read("bank://files/../b"),
        read("bank://none"),
        ("get", {"name": "letter", "arguments": {"to": "Bo"}}),
        ("get", {"name": "letter"}),
        ("get", {"name": "none"}),
        ("complete", {"prompt": "letter", "name": "tone", "value": "k"}),
        ("complete", {"template": "bank://branches/{number}", "name": "number", "value": ""}),
    ],
    "library": [
        call("find", title="Emma", limit="2"),
        call("find"),
        call("describe"),
        call("rate", stars=3),
        call("rate", stars=9),
        call("refuse"),
        call("crash"),
        call("archive_old", year=1815),
        call("nothing"),
        read("library://rules"),
        read("library://books/a/b/c"),
        read("library://search?query=emma&limit=5"),
        read("library://none"),
        ("get", {"name": "recommend", "arguments": {"topic": "islands"}}),
        ("get", {"name": "none"}),
    ],
    "clinic": [call("ward_A", day=1), call("hidden"), call("crash"), call("ward_C")],
}
TALKS: dict[str, list[tuple[tuple[str, dict[str, Any]], list[dict[str, Any]]]]] = {
    "bank": [
        (
            call("transfer", amount=5),
            [{"action": "accept", "content": {"sure": True}}, {"action": "accept", "content": {"pin": 1234}}],
        ),
        (call("transfer", amount=5), [{"action": "decline"}]),
        (call("transfer", amount=5), [{"action": "accept", "content": {"sure": True}}, {"action": "cancel"}]),
        (call("transfer", amount=5), [{"action": "accept", "content": {"sure": "who knows"}}]),
        (call("consent"), [{"action": "accept"}]),
        (call("loan", amount=9), [{"action": "accept", "content": {"pin": 4}}]),
        (call("loan", amount=9), [{"action": "decline"}]),
    ],
    "library": [
        (
            call("lend", title="Emma"),
            [{"action": "accept", "content": {"value": "paperback"}}, {"action": "accept", "content": {"weeks": 2}}],
        ),
        (call("lend", title="Emma"), [{"action": "cancel"}]),
    ],
    "clinic": [],
}
OWN_ROUNDS = {
    "bank": [(call("loan", amount=9), [{"action": "accept", "content": {"pin": 4}}])],
    "clinic": [
        (
            call("ward_B"),
            [{"action": "accept", "content": {"day": "Monday"}}, {"action": "accept", "content": {"day": "Friday"}}],
        )
    ],
}


def without_revision(said: list[Any]) -> list[Any]:
    """Leave out who answers, which a result has at 2026-07-28 only."""
    return [{key: value for key, value in each.items() if key != "_meta"} for each in said]
