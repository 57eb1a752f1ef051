"""The cost of a million conversations, from the figures of the benchmarks: the tables of docs/costs.md, line by line.

Prices are the public list prices of us-east-1, written down here. Every line is one sum that a reader can repeat.
Assumptions that were not measured are marked.
"""

from __future__ import annotations

import math
import re
import textwrap
from typing import TYPE_CHECKING, NamedTuple

from tests.benchmarks.entrants import OBSERVED
from tests.benchmarks.report import ROOT, number, table
from tests.support.request_costs import LEGACY, MOST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.benchmarks.figures import Results

PAGE = ROOT / "docs/costs.md"
WARM_ROUNDS = "every request is a warm round, with its logs"  # a row of the table of the worst case
DEAREST_REQUEST = "every request is the dearest of the next table"  # another row of it
BEGIN, END = "<!-- written by `make bench`: begin -->", "<!-- end -->"

PRICES_OF = "November 2026"  # when they were last compared with public pages
HTTP_API = 1.00  # USD a million requests, of up to 512 KB
LAMBDA_REQUEST = 0.20  # a million
GB_SECOND = {"x86_64": 0.0000166667, "arm64": 0.0000133334}
KMS_CALL = 0.03  # ten thousand
KMS_KEY = 1.00  # a month
LOG_GB = 0.50
BYTES_OF_GB = "1 000 000 000"
TABLE_WRITE, TABLE_READ = 0.625, 0.125  # a million; DynamoDB on demand: 1 KB written, 4 KB read
CACHE_GB_HOUR, CACHE_GB = 0.084, 0.1  # ElastiCache Serverless for Valkey, and the least it bills
TASK_HOUR = 2 * (0.5 * 0.04048 + 1 * 0.004445)  # two Fargate tasks of half a vCPU and 1 GB
BALANCER_HOUR = 0.0225 + 0.008  # an Application Load Balancer with one capacity unit
HOURS = 730  # of a month

GB = 0.5  # of memory, as template.yaml has it
SHARE = 512 / 1769  # of a vCPU that 512 MB get: "at 1,769 MB, a function has the equivalent of one vCPU"
ROUNDS = 3  # of a conversation: two questions, and the result
KMS_CALLS = 3000  # for a million questions: docs/performance.md
RUNTIME_MS = 1.0  # an invocation, of the runtime's own: assumed
INVOKE_MS = 10.0  # from the endpoint to the function and back: assumed
EVENT_BYTES = 26  # that CloudWatch adds to each line
# Bytes of the functions' log for a request at a warm endpoint, with EVENT_BYTES: tests/harness/runtime/test_alarms.py
LOG_BYTES = {
    "`tools/call` that asks": 630,
    "`tools/call` with an answer": 680,
    "`tools/call` of an unknown tool": 590,
    "`tools/list`": 530,
    "`tools/call` of 2025, two lines": 1390,
}
ASKS, ANSWERS, *_OTHERS = LOG_BYTES
CONVERSATION_BYTES = LOG_BYTES[ASKS] + (ROUNDS - 1) * LOG_BYTES[ANSWERS]
ACCESS_BYTES = 226  # of the access log for a request: tests/project/test_template.py
CLOUDFRONT_REQUEST, CLOUDFRONT_FUNCTION = 1.00, 0.10  # a million
REQUESTS_A_MONTH = 50 * 30 * 24 * 3600  # the throttle of template.yaml, for 30 days


class Round(NamedTuple):
    """Milliseconds that Lambda bills for one round: the endpoint, which waits for the function; and the function."""

    endpoint: int
    function: int

    @property
    def both(self) -> int:
        """The items of a bill."""
        return self.endpoint + self.function


def rounds(results: Results) -> list[Round]:
    """Scale what was measured to the share of a processor that 512 MB have, for each of the three rounds.

    Raises:
        LookupError: the run has not measured what is needed.

    """
    front = _ms(results, "warm-forwarded") - _ms(results, "warm-call")
    return [_round(front, _ms(results, case)) for case in ("warm-ask", "warm-middle", "warm-answer")]


def cold(results: Results) -> Round:
    """Say the same of a round in which both are cold."""
    function = _ms(results, "cold-ask")
    return _round(_ms(results, "cold-ask-door") - function, function)


def _round(endpoint: float, function: float) -> Round:
    took = math.ceil(function / SHARE + RUNTIME_MS)
    return Round(math.ceil(endpoint / SHARE + RUNTIME_MS + INVOKE_MS + took), took)


def _ms(results: Results, case: str) -> float:
    if found := results.get(case, OBSERVED):
        return found.median / 1000
    message = f"{case} was not measured"
    raise LookupError(message)


def lines(results: Results, processor: str) -> list[tuple[str, str, float]]:
    """List what a million conversations cost: what, the sum that a reader can do again, and its result in USD."""
    warm, chilly, price = rounds(results), cold(results), f"0.5 GB x {GB_SECOND[processor]:.10f} USD / 1 000"
    paid = sum(one.both for one in warm)
    more = chilly.both - paid // ROUNDS  # milliseconds that a cold round takes more
    sums = (
        ("API Gateway, HTTP API", f"{ROUNDS} 000 000 requests x {HTTP_API:.2f} USD / 1 000 000"),
        ("Lambda, requests: endpoint and function", f"{2 * ROUNDS} 000 000 x {LAMBDA_REQUEST:.2f} USD / 1 000 000"),
        (f"Lambda, {processor}, 512 MB: all three rounds", f"1 000 000 x {paid} ms x {price}"),
        ("one request in 100 finds both cold", f"{ROUNDS}0 000 x {spaced(more)} ms more x {price}"),
        ("KMS, for two million questions", f"{spaced(2 * KMS_CALLS)} calls x {KMS_CALL:.2f} USD / 10 000"),
        (
            "logs of the functions",
            f"1 000 000 x {spaced(CONVERSATION_BYTES)} bytes x {LOG_GB:.2f} USD / {BYTES_OF_GB}",
        ),
        ("the access log", f"{ROUNDS} 000 000 x {ACCESS_BYTES} bytes x {LOG_GB:.2f} USD / {BYTES_OF_GB}"),
    )
    return [(what, how, reckoned(how)) for what, how in sums]


def reckoned(how: str) -> float:
    """Do a sum as it is written: factors between crosses, and at most one divisor."""
    plain = re.sub(r"(?<=\d) (?=\d{3})", "", how)
    product, _, divisor = plain.partition(" / ")
    return math.prod(float(factor.split()[0]) for factor in product.split(" x ")) / float(divisor or 1)


def spaced(value: float) -> str:
    """Write a whole number in groups of three."""
    return f"{value:,.0f}".replace(",", " ")


def filled(text: str) -> str:
    """Break a paragraph into lines as long as the page's."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def total(results: Results, processor: str) -> float:
    """Add them up."""
    return sum(usd for _what, _how, usd in lines(results, processor))


def markdown(results: Results) -> str:
    """Write the tables of the page."""
    shown = [[what, how, f"{usd:.2f}"] for what, how, usd in lines(results, "x86_64")]
    both = {processor: total(results, processor) for processor in GB_SECOND}
    heads = ("a million conversations of three rounds", "", "USD")
    more = f"On arm64 it is {both['arm64']:.2f}. API Gateway counts each 512 KB of a request as one more request."
    return "\n".join(
        (
            *table(heads, [*shown, ["**together**", "", f"**{both['x86_64']:.2f}**"]]),
            "",
            filled(_explained(results)),
            "",
            filled(more),
            "",
            filled(_second_hop(results)),
            "",
            *_compared(both),
        )
    )


def _second_hop(results: Results) -> str:
    """Say what the endpoint costs beside requests that go to the functions directly."""
    waited = sum(one.endpoint for one in rounds(results))
    work = reckoned(f"1 000 000 x {waited} ms x 0.5 GB x {GB_SECOND['x86_64']:.10f} USD / 1 000")
    hop = ROUNDS * LAMBDA_REQUEST + work
    edge = ROUNDS * (CLOUDFRONT_REQUEST + CLOUDFRONT_FUNCTION)
    return (
        f"The endpoint is {hop:.2f} of it: {ROUNDS} 000 000 invocations, and {waited} ms in the three rounds. Clients"
        " that call `/mcp/<folder>` themselves do not pay it. [Routing at the edge](recipes.md#routing-at-the-edge)"
        f" saves it too, but CloudFront costs {edge:.2f} beyond its free tier."
    )


def _compared(both: Mapping[str, float]) -> list[str]:
    """Write what others cost: a store for sessions beside the same functions, and servers that never sleep."""
    stored = 3 * TABLE_WRITE + 2 * TABLE_READ  # each round but the first reads, each writes or deletes
    cache = CACHE_GB_HOUR * CACHE_GB * HOURS
    always = (TASK_HOUR + BALANCER_HOUR) * HOURS
    even = (always - KMS_KEY) / both["x86_64"]
    asked = even * ROUNDS * 1e6 / (HOURS * 3600)
    rows = [
        ["this, x86_64 (arm64)", f"{KMS_KEY:.2f}, the key", f"{both['x86_64']:.2f} ({both['arm64']:.2f})"],
        ["the same functions with a session table (DynamoDB)", "0.00", f"{stored:.2f} more, no KMS"],
        ["the same functions with a cache (ElastiCache Serverless)", f"{cache:.2f}, and a VPC", "0.01 more, no KMS"],
        ["two Fargate tasks (0.5 vCPU, 1 GB) and a load balancer", f"{always:.2f}", "0.00, up to their limit"],
    ]
    crossing = (
        f"Servers that are always on are cheaper above {number(even)} million conversations a month, or"
        f" {asked:.0f} requests a second. Whether two tasks can carry that load was not measured."
    )
    return [
        *table(("compared", "USD a month, asked nothing", "USD a million conversations"), rows),
        "",
        filled(crossing),
    ]


def _explained(results: Results) -> str:
    """Say where the milliseconds come from."""
    each = ", ".join(f"{one.endpoint} + {one.function}" for one in rounds(results))
    chilly = cold(results)
    return (
        f"Milliseconds billed for endpoint + function, in the three rounds: {each}; with both cold: {chilly.endpoint} +"
        f" {chilly.function}. [The bench](performance.md) measured the processor time, with logs on. It is divided by"
        f" {SHARE:.2f}, because 512 MB get 512/1769 of a vCPU; Lambda gives init more. Two parts are assumed:"
        f" {RUNTIME_MS:.0f} ms an invocation for the runtime, and {INVOKE_MS:.0f} ms for Invoke."
    )


def written(page: str, results: Results) -> str:
    """Put the tables between the marks of the page, and the price of a round into the table of the worst case."""
    before, _begin, rest = page.partition(BEGIN)
    _old, _end, after = rest.partition(END)
    row = re.compile(f"^\\| {re.escape(WARM_ROUNDS)} \\|.*$", re.MULTILINE)
    after = row.sub(worst_case_row(results), after)
    after = re.sub(f"^\\| {DEAREST_REQUEST} \\|.*$", dearest_request_row(), after, flags=re.MULTILINE)
    heads, *_rows = request_table().split("\n")
    after = re.sub(f"^{re.escape(heads)}\n(\\|.*\n)*", request_table() + "\n", after, flags=re.MULTILINE)
    return f"{before}{BEGIN}\n{markdown(results)}\n{END}{after}"


def worst_case_row(results: Results) -> str:
    """Write what a month of warm rounds at the limit of the throttle costs."""
    return _month(WARM_ROUNDS, total(results, "x86_64") / ROUNDS)


def dearest_request_row() -> str:
    """Write what a month of the request costs that makes the table dearest, if a client alone decides."""
    return _month(DEAREST_REQUEST, max(units.price for units, _own in table_units().values()))


def _month(what: str, price: float) -> str:
    """Write what a month of requests at the limit of the throttle costs, from the price of a million."""
    how = f"{spaced(REQUESTS_A_MONTH)} requests x {price:.2f} USD / 1 000 000"
    usd = f"{reckoned(how):,.2f}".replace(",", " ")
    return f"| {what} | {how} | {usd} |"


class Units(NamedTuple):
    """Read and write units of the table."""

    reads: float = 0
    writes: int = 0

    @property
    def price(self) -> float:
        """The USD for a million requests with these units."""
        return self.reads * TABLE_READ + self.writes * TABLE_WRITE

    def shown(self) -> str:
        """Write the units, and what a month at the limit of the throttle costs."""
        month = self.price * REQUESTS_A_MONTH / 1_000_000
        return f"{self.reads:.0f} + {self.writes}, {spaced(month)} USD" if self.price else ""


def table_units() -> dict[str, tuple[Units, Units]]:
    """Return the most units of each kind of request that uses the table: with a client's data, and a function's own."""
    most: dict[str, tuple[Units, Units]] = {}
    for case, cost in MOST.items():
        name = f"`{case.method}`" if "/" in case.method else SENT_IN_2025.get(case.method, case.method)
        name += " of 2025" if case.revision == LEGACY else ""
        units = list(most.get(name, (Units(), Units())))
        of_kind = units[case.own]
        units[case.own] = Units(max(of_kind.reads, cost.reads), max(of_kind.writes, cost.writes))
        most[name] = (units[0], units[1])
    return {name: units for name, units in most.items() if any(one.price for one in units)}


SENT_IN_2025 = {"answer": "an answer", "resume": "`GET`, a poll"}


def request_table() -> str:
    """Write the table of the most that a request costs in units of the table."""
    heads = ("reads + writes of one request", "a client's largest data", "a function's own, without `BlobBucket`")
    rows = [[name, *(units.shown() for units in both)] for name, both in table_units().items()]
    return "\n".join(table(heads, rows))
