"""Tools that ask, and the hosts that call them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from mcp_functions import Elicit, Question, Sample, Step, serve, tool
from mcp_functions.protocol.constants import APP_MIME_TYPE, EXTENSION_APPS
from mcp_functions_harness.testing import Conversation
from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.handlers.base import Handler
    from mcp_functions.hooks import AuditRecord
    from mcp_functions.http.gateway import LambdaFunction

APPS: dict[str, Any] = {"extensions": {EXTENSION_APPS: {"mimeTypes": [APP_MIME_TYPE]}}}
FORMS: dict[str, Any] = {"elicitation": {}}
NOTHING: dict[str, Any] = {}
Seat = Literal["window", "aisle"]
MESSAGE = "Where would you like to sit?"


@tool(ask_in_words=["seat"])
def book(city: str, *, elicit: Elicit) -> str:
    """Book a seat."""
    seat = elicit("seat", MESSAGE, Seat)
    if not elicit("agree", f"A {seat} seat to {city} costs 70 EUR. Book it?", bool):
        return "Nothing was booked."
    return f"Booked a {seat} seat to {city}."


@tool
def rate(*, elicit: Elicit) -> dict[str, int]:
    """Ask for a rating, and promise structured content."""
    return {"stars": elicit("stars", "How many stars?", int)}


@tool
def connect(*, elicit: Elicit) -> str:
    """Ask the user to open a page."""
    elicit.url("bank", "Sign in to your bank", "https://bank.example/login")
    return "Connected."


@tool
def describe(*, sample: Sample) -> str:
    """Ask the client's model."""
    return str(sample("words", "Describe it", max_tokens=9)["content"])


@tool
def pack(*, elicit: Elicit) -> str:
    """Ask two things at once."""
    bag, day = elicit.together(Question("Which bag?", str, key="bag"), Question("Which day?", str, key="day"))
    return f"{bag} on {day}"


@tool
def convert(*, step: Step) -> str:
    """Work for longer than one round has time."""
    for page in range(2):
        ran = list[int]()
        step(f"page-{page}", ran.append, page)
        if ran:
            step.shed()
    return "Converted 2 pages."


class Ledger:
    """Keeps the records of the audit."""

    def __init__(self) -> None:
        self.records: list[AuditRecord] = []

    def write(self, record: AuditRecord) -> None:
        self.records.append(record)


def host(
    *handlers: Handler[..., Any], capabilities: dict[str, Any] = APPS, principal: str | None = None
) -> Conversation:
    """Return a conversation of a host that shows apps, unless the capabilities say otherwise."""
    return Conversation(serve(*handlers), capabilities=capabilities, principal=principal)


def request(
    function: LambdaFunction, method: str, params: Mapping[str, Any] | None = None, **options: object
) -> dict[str, Any]:
    """Send one request, and return the checked response; the options are those of `wire.message`."""
    sent = wire.message(method, params, **{"capabilities": APPS, **options})
    name = function.handlers[0].name
    return wire.read(function(wire.event(sent), wire.Context(f"local_{name}")), method)


def way_of(result: Mapping[str, Any]) -> str:
    """Tell how a result asks: by the client's elicitation, in a form ("app"), or in words."""
    if result["resultType"] == "input_required":
        return "client"
    return "app" if "mcp-functions/form" in result["_meta"] else "words"


def state_in(text: str) -> str:
    """Return the state that a text tells the model to pass on."""
    return text.partition('"state": "')[2].partition('"')[0]
