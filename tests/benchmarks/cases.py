"""The cases: each is a call, the rounds before it, and the expected response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tests.benchmarks import dialects
from tests.benchmarks.entrants import (
    AWSLABS,
    EMPTY,
    FASTMCP,
    FLOOR,
    JSON,
    LIGHT,
    LOWLEVEL,
    NOTHING,
    OBSERVED,
    OURS,
    SDK,
    SDK_KMS,
    SEALING,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

EVERYBODY = (EMPTY, JSON, FLOOR, OURS, OBSERVED, AWSLABS, SDK, LOWLEVEL, FASTMCP)
LOADED = (NOTHING, FLOOR, OURS, OBSERVED, AWSLABS, SDK)
CALLED = (FLOOR, OURS, OBSERVED, AWSLABS, SDK, LOWLEVEL, FASTMCP)
ASKING = (FLOOR, OURS, OBSERVED, SDK, LOWLEVEL, FASTMCP)
GROWING = (FLOOR, OURS, OBSERVED, SDK)
MIDDLE = (FLOOR, SEALING, OURS, OBSERVED, SDK, LOWLEVEL)
BOTH = (OURS, OBSERVED)

CITY = {"name": "book_flight", "arguments": {"city": "Lisbon"}}
LISTED = 50  # tools, in the cases that list
ROUNDS = 10
CHAIN = {"name": "plan", "arguments": {"city": "Lisbon"}}
KILOBYTES = (1, 4, 16, 64, 256, 1024)
TABULAR = (16, 1024)  # KB of rows of JSON, where the others are of long strings
TOOLS = (1, 10, 50, 200, 500)


@dataclass(frozen=True, eq=False)
class Case:
    """One row of the tables.

    Attributes:
        name: on the command line.
        table: its table in TABLES.
        start: cold or warm.
        function: of contenders/, which makes the server.
        params: of the call; `tools/list` if there are none.
        entrants: by title.
        told: the text of the timed round's result; "" if the round asks or lists.
        before: number of untimed rounds before the timed one.
        argument: of the function, for example the number of tools that it lists.
        runtime: whether Lambda's runtime client loads the function (`runtime_client`).
        door: whether the call passes this project's endpoint, whose processor time is added.
        size: the value that grows from case to case; 0 otherwise.

    """

    name: str
    table: str
    start: Literal["cold", "warm"]
    function: str
    entrants: tuple[str, ...]
    params: Mapping[str, Any] | None = None
    told: str = ""
    before: int = 0
    argument: int | None = None
    door: bool = False
    runtime: bool = False
    size: int = 0

    def check(self, result: Mapping[str, Any]) -> None:
        """Check the result of the timed round.

        Raises:
            WrongAnswer: it is another than this case's.

        """
        found: object
        expected: object
        if self.params is None:
            found, expected = len(result.get("tools", ())), self.argument
        elif self.told:
            found, expected = dialects.text_of(result), self.told
        else:
            found, expected = result.get("resultType"), "input_required"
        if found != expected:
            message = f"{self.name}: {found!r} instead of {expected!r}"
            raise dialects.WrongAnswer(message)


ADD = {"name": "add", "arguments": {"a": 2, "b": 3}}
BOOKED = "Booked: Lisbon, window seat."

# Each is one interleaved run (all the cold ones together), and one table of the page.
TABLES = {
    "cold-add": "Cold: `add(a: int, b: int)`",
    "cold-list": f"Cold: a list of {LISTED} tools",
    "cold-ask": "Cold: the first sealed round, KMS over HTTP",
    "runtime-add": "Cold in Lambda's runtime client: `add(a: int, b: int)`",
    "runtime-ask": "Cold in Lambda's runtime client: the first sealed round, KMS over HTTP",
    "cold-sign-in": "Cold: a whole sign-in, its six requests together",
    "warm-call": "Warm: `add(a: int, b: int)`",
    "warm-list": f"Warm: a list of {LISTED} tools",
    "warm-ask": "Warm: a round that asks",
    "warm-answer": "Warm: the answer that ends the conversation",
    "warm-middle": "Warm: the middle of three rounds, an answer and the next question",
}
GROWTH = {  # a table for each, and what its first column counts
    "rounds": ("Growth: a conversation, by round", "round"),
    "state-ask": ("Growth: a round that asks, by size of the state", "KB"),
    "state-answer": ("Growth: an answer, by size of the returned state", "KB"),
    "state-rows-ask": ("Growth: a round that asks, by size of the state as rows of JSON", "KB"),
    "state-rows-answer": ("Growth: an answer, by size of the returned rows", "KB"),
    "tools": ("Growth: a list, by number of tools", "tools"),
    "arguments": ("Growth: a call, by size of the argument", "KB"),
}
CASES = (
    Case("cold-add", "cold-add", "cold", "add", EVERYBODY, ADD, "5"),
    Case("cold-add-door", "cold-add", "cold", "add", BOTH, ADD, "5", door=True),
    Case("cold-list", "cold-list", "cold", "listing", CALLED, argument=LISTED),
    Case("cold-ask", "cold-ask", "cold", "ask", (*ASKING, LIGHT, SDK_KMS), CITY),
    Case("cold-ask-door", "cold-ask", "cold", "ask", BOTH, CITY, door=True),
    Case("runtime-add", "runtime-add", "cold", "add", LOADED, ADD, "5", runtime=True),
    Case(
        "runtime-ask",
        "runtime-ask",
        "cold",
        "ask",
        (NOTHING, FLOOR, OURS, OBSERVED, LIGHT, SDK, SDK_KMS),
        CITY,
        runtime=True,
    ),
    Case("cold-sign-in", "cold-sign-in", "cold", "sign_in", BOTH),
    Case("warm-call", "warm-call", "warm", "add", CALLED, ADD, "5"),
    Case("warm-forwarded", "warm-call", "warm", "add", BOTH, ADD, "5", door=True),
    Case("warm-list", "warm-list", "warm", "listing", CALLED, argument=LISTED),
    Case("warm-ask", "warm-ask", "warm", "ask", (SEALING, *ASKING), CITY),
    Case("warm-answer", "warm-answer", "warm", "ask", (SEALING, *ASKING), CITY, BOOKED, before=1),
    Case("warm-middle", "warm-middle", "warm", "chain", MIDDLE, CHAIN, before=1, argument=2),
)


def growing() -> tuple[Case, ...]:
    """List the cases that grow: a case for each size."""
    every, asking = (*GROWING, AWSLABS), (*GROWING, LOWLEVEL)
    rounds = [
        Case("rounds", "rounds", "warm", "chain", asking, CHAIN, before=number, argument=ROUNDS, size=number + 1)
        for number in range(ROUNDS)
    ]
    state = [
        Case(name, name, "warm", function, GROWING, _state(size), _rows(size, each) * before, before=before, size=size)
        for function, prefix, sizes, each in (("state", "state", KILOBYTES, 4), ("rows", "state-rows", TABULAR, 16))
        for size in sizes
        for before, name in enumerate((f"{prefix}-ask", f"{prefix}-answer"))
    ]
    tools = [Case("tools", "tools", "warm", "listing", every, argument=size, size=size) for size in TOOLS]
    texts = [
        Case("arguments", "arguments", "warm", "echo", every, _text(size), str(size * 1024), size=size)
        for size in KILOBYTES
    ]
    return (*rounds, *state, *tools, *texts)


def _state(kilobytes: int) -> dict[str, Any]:
    return {"name": "remember", "arguments": {"kilobytes": kilobytes}}


def _rows(kilobytes: int, each: int) -> str:
    """Write what the tool says in the end; `each` is the rows of one KB."""
    return f"{kilobytes * each} rows, window"


def _text(kilobytes: int) -> dict[str, Any]:
    return {"name": "length", "arguments": {"text": "x" * (kilobytes * 1024)}}
