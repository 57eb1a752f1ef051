"""A booking in steps: reserve, confirm, charge. The user pays once, even if rounds are repeated."""

from typing import TypedDict

from mcp_functions import Elicit, Step, serve, tool


class Flight(TypedDict):
    number: str
    euros: int


def reserve(city: str) -> Flight:
    """Simulate an airline: it holds a seat for an hour and then sells it."""
    return {"number": f"MF {100 + len(city)}", "euros": 70 * len(city)}


def pay(euros: int, key: str) -> str:
    """Simulate a payment API: a repeated idempotency key gets the same receipt."""
    return f"receipt {key[:8]} for {euros} EUR"


@tool
def book_trip(city: str, *, elicit: Elicit, step: Step) -> str:
    """Book a flight to a city, once the user agrees to its price."""
    flight = step("reserve", reserve, city)
    if not elicit("consent", f"Flight {flight['number']} to {city} costs {flight['euros']} EUR. Book it?", bool):
        return "Nothing was booked."
    receipt = step.keyed("charge", pay, flight["euros"])
    return f"Booked {flight['number']} to {city}: {receipt}."


handler = serve(book_trip)
