"""An operator stops a function or a caller by parameter, and callers have pseudonyms in the log.

KMS is moto's, behind HTTP, and its HMAC key is that of the stack.
"""

# No `from __future__ import annotations`: the tools below are read as an author writes them.

import logging
import re
from calendar import timegm
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import boto3
import pytest
from pydantic import BaseModel

from mcp_functions import Elicit, serve, serve_catalog, tool
from mcp_functions.aws.errors import ClientError
from mcp_functions.http.callers import PAUSE_SECONDS, Pseudonyms, pseudonyms
from mcp_functions.http.gateway import LambdaFunction, WorkFailed
from mcp_functions.local import environment
from mcp_functions.protocol.errors import CallerStopped, Misconfigured, TemporarilyUnavailable
from mcp_functions.testing import Conversation, deployed
from tests.support import wire

NOVEMBER, DECEMBER = timegm((2026, 11, 22, 0, 0, 0)), timegm((2026, 12, 1, 0, 0, 0))
STOPPED = {"code": -32600, "message": "The operator of this server has stopped this caller"}
UNTIL_LATER = {
    "code": -32603,
    "message": "The operator of this server has stopped this function",
    "data": {"retryable": True},
}


class Seat(BaseModel):
    seat: str


@tool
def book(city: str, *, elicit: Elicit) -> str:
    """Book a seat."""
    return f"{city}: {elicit('seat', 'Which seat?', Seat).seat}"


@tool
def add(a: int) -> int:
    """Add one."""
    return a + 1


@tool(task="required")
def audit() -> str:
    """Audit a year."""
    return "done"


booking, adding, auditing = serve(book), serve(add), serve(audit)


class Lines(logging.Handler):
    """Collects the fields of the line of each request."""

    def __init__(self) -> None:
        super().__init__()
        self.fields: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if hasattr(record, "outcome"):
            self.fields.append(vars(record))


Told = list[dict[str, Any]]


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Iterator[Told]:
    """Collect the fields of the line of each request."""
    lines = Lines()
    caplog.set_level(logging.INFO, "mcp_functions")
    logging.getLogger("mcp_functions").addHandler(lines)
    yield lines.fields
    logging.getLogger("mcp_functions").removeHandler(lines)


@pytest.fixture
def key() -> Iterator[str]:
    """Deploy with an HMAC key, and return its ARN."""
    with deployed():
        made = boto3.client("kms").create_key(KeySpec="HMAC_256", KeyUsage="GENERATE_VERIFY_MAC")
        arn = str(made["KeyMetadata"]["Arn"])
        with environment.applied({"MCP_LOG_CALLERS": arn}):
            yield arn
    pseudonyms.cache_clear()


def ask(handler: LambdaFunction, who: str, *, now: float = NOVEMBER, **arguments: object) -> Conversation:
    """Call a function in a new container that has cached nothing."""
    pseudonyms.cache_clear()
    return Conversation(handler.fresh(now=lambda: now), principal=who).call(**arguments)


def stop(*names: str | None) -> Any:  # noqa: ANN401 - a context manager
    return environment.applied({"MCP_STOPPED_CALLERS": ",".join(name or "" for name in names)})


# ---- Pseudonyms


def test_all_functions_give_a_caller_the_same_name(key: str, told: Told) -> None:
    assert key
    ask(booking, "alice", city="Lisbon")
    ask(adding, "alice", a=1)
    ask(adding, "bob", a=1)
    alice, again, bob = (line["caller"] for line in told)
    assert alice == again != bob
    assert re.fullmatch(r"2026-11\.[\w-]{16}", alice)


def test_a_name_of_one_month_says_nothing_about_the_next(key: str, told: Told) -> None:
    assert key
    for now in (NOVEMBER, DECEMBER - 1, DECEMBER):
        ask(adding, "alice", now=now, a=1)
    first, last, next_ = (line["caller"].partition(".") for line in told)
    assert first == last
    assert next_[0] == "2026-12"
    assert next_[2] != last[2]


def test_a_container_asks_kms_once_a_month(key: str, told: Told) -> None:
    pseudonyms.cache_clear()
    handler = adding.fresh(now=lambda: NOVEMBER)
    for who in ("alice", "bob", "alice"):
        Conversation(handler, principal=who).call(a=1)
    assert [line["kms_calls"] for line in told] == [1, 0, 0]
    assert key


def test_without_the_parameter_no_line_names_a_caller(told: Told) -> None:
    with deployed():
        ask(adding, "alice", a=1)
    assert [(line["outcome"], "caller" in line) for line in told] == [("complete", False)]


# ---- A stopped caller


def test_a_stopped_caller_is_refused_by_every_function_and_others_are_not(key: str, told: Told) -> None:
    assert key
    ask(adding, "alice", a=1)
    with stop(told[0]["caller"]):
        for talk in (ask(booking, "alice", city="Lisbon"), ask(adding, "alice", a=1)):
            assert (talk.status, talk.error) == (403, STOPPED)
        assert ask(adding, "bob", a=1).text == "2"
    assert [line["outcome"] for line in told] == ["complete", "refused", "refused", "complete"]
    assert told[1]["caller"] == told[0]["caller"], "an operator sees that the stop works"


def test_a_stopped_caller_costs_a_warm_container_no_call_of_kms(key: str, told: Told) -> None:
    assert key
    held = ask(booking, "alice", city="Lisbon")
    with stop(told[0]["caller"]):
        pseudonyms.cache_clear()
        handler = booking.fresh(now=lambda: NOVEMBER)
        for _ in range(3):
            talk = Conversation(handler, principal="alice").call(city="Lisbon")
            talk.rounds = held.rounds
            assert talk.accept(seat={"seat": "A1"}).status == 403
    assert [line["kms_calls"] for line in told[1:]] == [1, 0, 0, 0, 0, 0]


def test_a_stop_holds_in_the_next_month(key: str, told: Told) -> None:
    assert key
    ask(adding, "alice", a=1)
    with stop(told[0]["caller"], "2026-10.AAAAAAAAAAAAAAAA"):
        assert ask(adding, "alice", now=DECEMBER, a=1).status == 403
        assert ask(adding, "bob", now=DECEMBER, a=1).status == 200


def test_a_client_of_2025_hears_of_its_stop_by_the_status_and_without_sign_in_by_its_address(
    key: str, told: Told
) -> None:
    assert key
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1}}}
    event = wire.event(call, headers={"mcp-protocol-version": "2025-11-25"})
    elsewhere = wire.event(call, headers={"mcp-protocol-version": "2025-11-25"})
    elsewhere["requestContext"]["http"]["sourceIp"] = "192.0.2.2"
    assert adding.fresh()(event, wire.Context("local_add"))["statusCode"] == 200
    with stop(told[0]["caller"]):
        assert adding.fresh()(event, wire.Context("local_add"))["statusCode"] == 403
        assert adding.fresh()(elsewhere, wire.Context("local_add"))["statusCode"] == 200
    with environment.applied({"MCP_STOPPED_FUNCTIONS": "add"}):
        assert adding.fresh()(elsewhere, wire.Context("local_add"))["statusCode"] == 503


def test_stopped_callers_without_the_key_are_a_misconfiguration(told: Told) -> None:
    with deployed(), stop("2026-11.fbIZn1rBHzMDjVTr"):
        assert ask(adding, "alice", a=1).status == 500
    assert told[0]["misconfigured"]


class Kms:
    """KMS that fails until it is repaired; it counts its calls."""

    def __init__(self, code: str) -> None:
        self.code, self.calls = code, 0

    def generate_mac(self, *, KeyId: str, MacAlgorithm: str, Message: bytes) -> dict[str, Any]:  # noqa: N803 - boto3's names
        self.calls += 1
        assert (KeyId, MacAlgorithm) == ("arn:aws:kms:eu-west-1:123456789012:key/h", "HMAC_SHA_256")
        if self.code:
            raise ClientError(self.code, 400)
        return {"Mac": Message}


def admit(names: Pseudonyms, stopped: Sequence[str] = (), now: float = NOVEMBER) -> None:
    names.admit("alice", stopped, now)


def test_a_failure_of_kms_costs_a_request_its_name_only_and_kms_a_call_each_minute() -> None:
    kms = Kms("ThrottlingException")
    names = Pseudonyms("arn:aws:kms:eu-west-1:123456789012:key/h", lambda: kms)
    for second in (0, 1, PAUSE_SECONDS - 1, PAUSE_SECONDS):
        admit(names, now=NOVEMBER + second)
    assert kms.calls == 2
    kms.code = ""
    admit(names, now=NOVEMBER + 2 * PAUSE_SECONDS)
    assert names.name("alice", "2026-11", NOVEMBER).startswith("2026-11.")
    assert kms.calls == 3


@pytest.mark.parametrize(
    ("code", "error"), [("ThrottlingException", TemporarilyUnavailable), ("AccessDeniedException", Misconfigured)]
)
def test_nobody_passes_while_callers_are_stopped_and_kms_does_not_say_who_they_are(
    code: str, error: type[Exception]
) -> None:
    kms = Kms("")
    names = Pseudonyms("arn:aws:kms:eu-west-1:123456789012:key/h", lambda: kms)
    stopped = [names.name("alice", "2026-11", NOVEMBER)]
    with pytest.raises(CallerStopped):
        admit(names, stopped)
    names.reset()
    kms.code = code
    with pytest.raises(TemporarilyUnavailable):
        admit(names, stopped)
    names.reset()
    with pytest.raises(error):
        names.name("alice", "2026-11", NOVEMBER)


# ---- A stopped function


def test_a_stopped_function_answers_503_before_any_call_of_kms(told: Told) -> None:
    with deployed(MCP_STOPPED_FUNCTIONS="add, book"):
        for talk in (ask(booking, "alice", city="Lisbon"), ask(adding, "alice", a=1)):
            assert (talk.status, talk.error) == (503, UNTIL_LATER)
            assert int(talk.rounds[-1][1]["headers"]["retry-after"]) == 300
    assert [(line["outcome"], line["reason"], line["kms_calls"]) for line in told] == [
        ("refused", "FunctionStopped", 0)
    ] * 2


def test_a_stopped_endpoint_answers_nothing_but_its_functions_do() -> None:
    endpoint = serve_catalog(Path(__file__).parents[2] / "functions/mcp/catalog.json")
    with deployed(MCP_STOPPED_FUNCTIONS="mcp"):
        listing = wire.event(wire.message("tools/list"))
        assert endpoint(listing, wire.Context("local_mcp"))["statusCode"] == 503
        assert adding.fresh()(listing, wire.Context("local_add"))["statusCode"] == 200


def test_the_other_functions_go_on() -> None:
    with deployed(MCP_STOPPED_FUNCTIONS="book"):
        assert ask(adding, "alice", a=1).text == "2"


def test_a_worker_of_a_stopped_function_leaves_its_task_alone(told: Told) -> None:
    order = {"mcpTask": {"id": "1", "owner": None}}
    worker = wire.Context("local_audit-worker", 900_000)
    with deployed(MCP_STOPPED_FUNCTIONS="audit"):
        assert auditing.fresh()(order, worker) == {}
    assert [(line["outcome"], line["reason"]) for line in told] == [("refused", "FunctionStopped")]
    with deployed(MCP_STOPPED_FUNCTIONS="audit", MCP_STACK=""), pytest.raises(WorkFailed):
        auditing.fresh()(order, worker)
