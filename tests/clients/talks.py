"""The conversations that every client holds: those of each sample function, with their results."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

DECLINE: dict[str, Any] = {"action": "decline"}
CANCEL: dict[str, Any] = {"action": "cancel"}
NO = {"decline": (DECLINE, "declined to answer"), "cancel": (CANCEL, "dismissed without answering")}
PLACES = ("at the front door", "at its own endpoint")

HOW = "Resolving Bug #4522 requires a resolution. How was this bug resolved?"
WHICH = "Since this is a duplicate, which work item is the original?"
DUPLICATE = "Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created."
WHO = "Please provide your GitHub username"
WEATHER = "Current weather in New York:\nTemperature: 72°F\nConditions: Partly cloudy"
READER = "Who is the briefing on floor 3 for?"
BRIEFING = "Write a briefing on floor 3 for customers, to be read in 5 minutes."
WHY = "Why do you need to read IT-42?"
TICKET = "IT-42: the printer on floor 3 is on fire. (Read because: curious)"
PRICE = "Flight MF 106 to Lisbon costs 420 EUR. Book it?"
RECEIPT = re.compile(r"(receipt|transfer) [0-9a-f]{8}")
WHERE, WHEN = "Where to?", "In which month?"
TRIP = "5 days in Lisbon in May."
LANGUAGE = "In which language would you like to read them?"
RULES = {
    "English": "Shoes off. Quiet after ten. The cat is not to be fed.",
    "Português": "Sem sapatos. Silêncio depois das dez. Não se dá comida ao gato.",
}

UPDATE = ("tools/call", "update_work_item", {"workItemId": 4522, "fields": {"System.State": "Resolved"}})
ADD = ("tools/call", "add", {"a": 2, "b": 40})
GET_WEATHER = ("tools/call", "get_weather", {"location": "New York"})
BRIEF = ("prompts/get", "briefing", {"topic": "floor 3"})
READ = ("resources/read", "ticket", {"uri": "tickets://IT/42"})
BOOK = ("tools/call", "book_trip", {"city": "Lisbon"})
PAY = ("tools/call", "pay_invoice", {"number": "2026-001"})
PLAN = ("tools/call", "plan_trip", {"days": 5})
SUMMARIZE = ("tools/call", "summarize_year", {"year": 2026})
SELL = ("tools/call", "sales", {"year": 2026})
READ_RULES = ("resources/read", "house_rules", {"uri": "house://rules"})


class Talk(NamedTuple):
    """One conversation: what is called, how the person answers, and how it ends."""

    call: tuple[str, str, dict[str, Any]]
    answers: list[dict[str, Any]]
    asked: list[str]
    end: str

    @property
    def params(self) -> dict[str, Any]:
        method, name, arguments = self.call
        return arguments if method == "resources/read" else {"name": name, "arguments": arguments}

    def sent(self, url: str, place: str = PLACES[0]) -> dict[str, Any]:
        """Say it to a script that holds conversations."""
        method, function, _arguments = self.call
        at = url if place == PLACES[0] else f"{url}/{function}"
        return {"url": at, "method": method, "params": self.params, "answers": self.answers}


def accept(**content: object) -> dict[str, Any]:
    return {"action": "accept", "content": content}


TALKS = {
    "a number asks nothing": Talk(ADD, [], [], "42"),
    "a tool with an app answers any client": Talk(SELL, [], [], '{"year":2026,"quarters":[86,75,64,53]}'),
    "a resolution": Talk(
        UPDATE, [accept(resolution="Fixed")], [HOW], "Bug #4522 resolved as Fixed. State set to Resolved."
    ),
    "a duplicate": Talk(UPDATE, [accept(resolution="Duplicate"), accept(duplicateOfId=4301)], [HOW, WHICH], DUPLICATE),
    "the weather": Talk(GET_WEATHER, [accept(name="octocat")], [WHO], WEATHER),
    "a prompt": Talk(BRIEF, [accept(audience="customers")], [READER], BRIEFING),
    "a resource": Talk(READ, [accept(reason="curious")], [WHY], TICKET),
    "a booking": Talk(BOOK, [accept(consent=True)], [PRICE], "Booked MF 106 to Lisbon: receipt … for 420 EUR."),
    "no booking": Talk(BOOK, [accept(consent=False)], [PRICE], "Nothing was booked."),
    "a payment": Talk(
        PAY, [accept(approval=True)], ["Pay invoice 2026-001, 1290 EUR?"], "Paid: transfer … of 1290 EUR for 2026-001."
    ),
    "two requests in one round": Talk(PLAN, [accept(city="Lisbon"), accept(month="May")], [WHERE, WHEN], TRIP),
    "steps without a question": Talk(SUMMARIZE, [], [], "468 tickets in 2026, most of them in September: 79."),
    "a resource with a fixed URI": Talk(READ_RULES, [accept(reader="Português")], [LANGUAGE], RULES["Português"]),
}
for said, (answer, did) in NO.items():
    TALKS |= {
        f"{said} a resolution": Talk(UPDATE, [answer], [HOW], f"failed: The user {did}: {HOW}"),
        f"{said} the original": Talk(
            UPDATE, [accept(resolution="Duplicate"), answer], [HOW, WHICH], f"failed: The user {did}: {WHICH}"
        ),
        f"{said} the weather": Talk(GET_WEATHER, [answer], [WHO], f"failed: The user {did}: {WHO}"),
        f"{said} a prompt": Talk(BRIEF, [answer], [READER], f"-32602: The user {did}: {READER}"),
        f"{said} a resource": Talk(READ, [answer], [WHY], "IT-42: [redacted]"),
        f"{said} a booking": Talk(BOOK, [answer], [PRICE], f"failed: The user {did}: {PRICE}"),
        f"{said} one of two requests": Talk(
            PLAN, [accept(city="Lisbon"), answer], [WHERE, WHEN], "No trip was planned."
        ),
        f"{said} a resource with a fixed URI": Talk(READ_RULES, [answer], [LANGUAGE], RULES["English"]),
    }


def end(held: dict[str, Any]) -> str:
    """Say how a conversation ended, without the numbers that are its own."""
    return RECEIPT.sub(r"\1 …", _end(held))


def _end(held: dict[str, Any]) -> str:
    match held:
        case {"error": {"code": code, "message": message}}:
            return f"{code}: {message}"
        case {"result": {"isError": True, "content": [{"text": str(text)}]}}:
            return f"failed: {text}"
        case (
            {"result": {"content": [{"text": str(text)}]}}
            | {"result": {"contents": [{"text": str(text)}]}}
            | {"result": {"messages": [{"content": {"text": str(text)}}]}}
        ):
            return text
    return json.dumps(held)
