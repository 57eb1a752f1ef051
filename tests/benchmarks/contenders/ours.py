"""The toolkit, as its author's functions use it. Each function of this module is what one `app.py` would be."""

import json
import logging
import os
import sys

PLAIN = vars(logging.LogRecord("", 0, "", 0, "", (), None)).keys()


class AsLambda(logging.Formatter):
    """Writes records as Lambda's runtime does, which every function there has imported before it begins."""

    def format(self, record):
        told = {"timestamp": self.formatTime(record, "%Y-%m-%dT%H:%M:%SZ"), "level": record.levelname}
        fields = {name: value for name, value in vars(record).items() if name not in PLAIN}
        return json.dumps({**told, "message": record.getMessage(), "logger": record.name, **fields})


if os.environ.get("AWS_LAMBDA_LOG_LEVEL") == "INFO":
    written = logging.StreamHandler(sys.stdout)
    written.setFormatter(AsLambda())
    logging.root.addHandler(written)
    logging.root.setLevel("INFO")


def add():
    from mcp_functions import serve, tool

    @tool
    def add(a: int, b: int) -> int:
        """Add two whole numbers."""
        return a + b

    return serve(add)


def sign_in():
    from mcp_functions import serve_oauth

    return serve_oauth()


def door():
    return listing(0)


def listing(tools):
    from mcp_functions import serve_catalog

    return serve_catalog(f"{os.environ['BENCH_CATALOGS']}/{tools}.json")


def ask():
    from typing import Literal

    from pydantic import BaseModel

    from mcp_functions import Elicit, serve, tool

    class Seat(BaseModel):
        seat: Literal["window", "aisle"]

    @tool
    def book_flight(city: str, *, elicit: Elicit) -> str:
        """Book a flight to a city."""
        chosen = elicit("seat", f"Where would you like to sit on the way to {city}?", Seat)
        return f"Booked: {city}, {chosen.seat} seat."

    return serve(book_flight)


def chain(questions):
    from pydantic import BaseModel

    from mcp_functions import Elicit, serve, tool

    class Leg(BaseModel):
        place: str

    @tool
    def plan(city: str, *, elicit: Elicit) -> str:
        """Plan a trip of many legs, each of which depends on the one before."""
        places = [city]
        for leg in range(questions):
            places.append(elicit(f"leg{leg}", f"Where to from {places[-1]}?", Leg).place)
        return " > ".join(places)

    return serve(plan)


def state():
    from pydantic import BaseModel

    from mcp_functions import Question, serve, tool
    from mcp_functions.low_level import InputRequiredResult, InputResponses, RequestState

    class Seat(BaseModel):
        seat: str

    class Draft(BaseModel):
        rows: list[str] = []

    @tool
    def remember(kilobytes: int, *, answers: InputResponses, state: RequestState[Draft]) -> str | InputRequiredResult:
        """Carry so much state through a question."""
        if answers:
            return f"{len(state.value.rows)} rows, {answers['seat']['content']['seat']}"
        draft = Draft(rows=[f"{row:08x}" * 32 for row in range(kilobytes * 4)])
        return InputRequiredResult({"seat": Question("Where would you like to sit?", Seat)}, draft)

    return serve(remember)


def rows():
    from typing import Any

    from pydantic import BaseModel

    from mcp_functions import Question, serve, tool
    from mcp_functions.low_level import InputRequiredResult, InputResponses, RequestState

    class Seat(BaseModel):
        seat: str

    class Draft(BaseModel):
        rows: list[dict[str, Any]] = []

    @tool
    def remember(kilobytes: int, *, answers: InputResponses, state: RequestState[Draft]) -> str | InputRequiredResult:
        """Carry so many rows through a question."""
        if answers:
            return f"{len(state.value.rows)} rows, {answers['seat']['content']['seat']}"
        every = range(kilobytes * 16)
        draft = Draft(rows=[{"id": row, "name": f"{row:08x}", "price": row / 8, "free": True} for row in every])
        return InputRequiredResult({"seat": Question("Where would you like to sit?", Seat)}, draft)

    return serve(remember)


def echo():
    from mcp_functions import serve, tool

    @tool
    def length(text: str) -> int:
        """Count the characters of a text."""
        return len(text)

    return serve(length)
