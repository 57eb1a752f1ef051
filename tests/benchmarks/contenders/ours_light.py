"""The toolkit, where the question's form needs no pydantic: a `Literal` says what may be answered."""


def ask():
    from typing import Literal

    from mcp_functions import Elicit, serve, tool

    @tool
    def book_flight(city: str, *, elicit: Elicit) -> str:
        """Book a flight to a city."""
        seat = elicit("seat", f"Where would you like to sit on the way to {city}?", Literal["window", "aisle"])
        return f"Booked: {city}, {seat} seat."

    return serve(book_flight)
