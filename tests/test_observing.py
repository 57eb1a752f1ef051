"""What is told of a request: one line, and metrics if they are wanted; and who tells it.

No `from __future__ import annotations` here: the functions below are read as an author writes them.
"""

import io
import json
import logging
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider
from pydantic import BaseModel

from mcp_functions import Elicit, Step, catalog, gateway, observing, prompt, resource, serve, single_use, tool
from mcp_functions.errors import Busy, Misconfigured, TemporarilyUnavailable
from mcp_functions.front_door import FrontDoor
from mcp_functions.gateway import Endpoint, LambdaFunction
from mcp_functions.local import agreement
from mcp_functions.observing import Notes, writing
from mcp_functions.observing.measures import measured
from mcp_functions.settings import Settings
from mcp_functions.testing import Conversation, deployed
from tests import wire

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
ALWAYS = {"outcome", "status", "request_bytes", "response_bytes", "duration_ms", "kms_calls", "kms_ms", "cold_start"}


class Seat(BaseModel):
    seat: str


@tool
def add(a: int, b: int = 2) -> str:
    return str(a + b)


@tool
def book(city: str, *, elicit: Elicit) -> str:
    return f"{city} {elicit('seat', f'Which seat to {city}?', Seat).seat}"


@tool
def work(hours: int, *, step: Step) -> str:
    step("first", lambda: hours)
    if step("second", lambda: 2) and not _went_on:
        _went_on.append(True)
        step.shed()
    return "done"


_went_on: list[bool] = []


@tool
def hoard(*, elicit: Elicit, step: Step) -> str:
    for number in range(9):
        step(f"{number}", lambda: "x" * 4000)
    return elicit("seat", "Which?", Seat).seat


@tool
def broken(a: int) -> str:
    message = f"hunter2 {a}"
    raise LookupError(message)


@prompt
def brief(topic: str) -> str:
    return topic


@resource("notes://{owner}")
def note(owner: str) -> str:
    return owner


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """Says what was told so far, as fields, with message and level among them."""
    plain = logging.LogRecord("", 0, "", 0, "", (), None).__dict__.keys()
    with caplog.at_level(logging.INFO, "mcp_functions"):

        def told() -> list[dict[str, Any]]:
            records = [record for record in caplog.records if hasattr(record, "outcome")]
            fields = [{k: v for k, v in vars(r).items() if k not in plain and k != "message"} for r in records]
            return [{**f, "said": r.getMessage(), "at": r.levelname} for f, r in zip(fields, records, strict=True)]

        yield told


Lines = Callable[[], list[dict[str, Any]]]


def send(
    function: LambdaFunction,
    method: str,
    params: dict[str, Any] | None = None,
    **options: Any,  # noqa: ANN401 - what wire.event takes
) -> dict[str, Any]:
    meta = options.pop("meta", {})
    return function(wire.event(wire.message(method, params, meta=meta), **options), wire.Context())


# ---- The line


def test_a_request_is_one_line(lines: Lines) -> None:
    response = send(serve(add), "tools/call", {"name": "add", "arguments": {"a": 40}}, context={"requestId": "JKJa="})
    (line,) = lines()
    assert line.keys() - {"said", "at"} == ALWAYS | {"method", "handler", "round", "correlation_id", "request_id"}
    assert (line["said"], line["at"]) == ("answered: complete", "INFO")
    assert (line["method"], line["handler"], line["round"], line["outcome"]) == ("tools/call", "add", 1, "complete")
    assert (line["status"], line["response_bytes"]) == (200, len(response["body"]))
    assert (line["correlation_id"], line["request_id"]) == ("JKJa=", wire.Context().aws_request_id)
    assert (line["kms_calls"], line["kms_ms"], line["cold_start"]) == (0, 0, True)
    assert line["duration_ms"] > 0


@pytest.mark.parametrize("encoded", [False, True])
def test_bytes_are_counted_and_not_characters(lines: Lines, *, encoded: bool) -> None:
    body = json.dumps(wire.message("tools/call", {"name": "add", "arguments": {"a": "ż"}}), ensure_ascii=False)
    event = wire.event(body, headers=wire.headers(json.loads(body)), base64=encoded)
    serve(add)(event, wire.Context())
    (line,) = lines()
    assert 0 <= line["request_bytes"] - len(body.encode()) <= (2 if encoded else 0)


def test_a_conversation_can_be_followed_through_its_lines(lines: Lines) -> None:
    Conversation(serve(book)).call(city="Lisbon").accept(seat={"seat": "window"})
    first, second = lines()
    assert (first["outcome"], first["round"]) == ("input_required", 1)
    assert (second["outcome"], second["round"]) == ("complete", 2)
    assert first["flow"] == second["flow"]
    assert "jti" not in first
    assert second["jti"]
    assert (first["cold_start"], second["cold_start"]) == (True, False)


def test_the_flow_of_a_line_is_a_digest_of_what_the_audit_calls_it(lines: Lines) -> None:
    told: list[Any] = []
    Conversation(serve(book, audit=told.append)).call(city="Lisbon")
    (line,) = lines()
    assert line["flow"] == observing.digest(told[0].flow) != told[0].flow


def test_a_round_that_ends_without_a_question_is_shed(lines: Lines) -> None:
    _went_on.clear()
    Conversation(serve(work)).call(hours=3).go_on()
    assert [line["outcome"] for line in lines()] == ["shed", "complete"]


def test_a_tool_that_failed_is_told_from_a_request_that_did(lines: Lines) -> None:
    Conversation(serve(add)).call(a="no number")
    (line,) = lines()
    assert (line["outcome"], line["tool_error"], line["at"]) == ("complete", True, "INFO")


def test_a_state_that_opened_is_named_when_it_is_refused(lines: Lines) -> None:
    talk = Conversation(serve(book)).call(city="Lisbon")
    sent = talk.rounds[0][0]
    message = json.loads(sent["body"])
    message["params"] |= {"arguments": {"city": "Porto"}, "requestState": talk.state}
    serve(book)({**sent, "body": json.dumps(message)}, wire.Context("local-book"))
    first, second = lines()
    assert (second["said"], second["at"], second["outcome"]) == ("refused: -32602 arguments", "INFO", "refused")
    assert (second["code"], second["reason"], second["status"]) == (-32602, "arguments", 400)
    assert (second["handler"], second["round"], second["flow"]) == ("book", 2, first["flow"])
    assert second["jti"]


def test_of_a_state_that_did_not_open_nothing_is_told_but_why(lines: Lines) -> None:
    Conversation(serve(book)).call(city="Lisbon").tamper(lambda token: token[:-8] + "AAAAAAAA")
    line = lines()[1]
    assert line["reason"] == "tag"
    assert not {"jti", "flow", "round"} & line.keys()


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "hunter2"}),
        ("tools/call", {"name": {"hunter2": 1}}),
        ("prompts/get", {"name": "hunter2"}),
        ("resources/read", {"uri": "hunter2://x"}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "hunter2"}, "argument": {}}),
        ("hunter2/call", {}),
    ],
)
def test_whatever_a_client_makes_up_is_unknown(lines: Lines, method: str, params: dict[str, Any]) -> None:
    send(serve(add, brief, note), method, params)
    (line,) = lines()
    assert (line["method"] if "hunter2" in method else line["handler"]) == "unknown"
    assert "hunter2" not in str(line)


def test_an_older_client_is_seen_by_the_method_that_it_begins_with(lines: Lines) -> None:
    send(serve(add), "initialize", headers={"mcp-protocol-version": None})
    (line,) = lines()
    assert (line["method"], line["outcome"]) == ("initialize", "refused")


def test_a_resource_is_told_by_its_name_and_never_by_the_uri(lines: Lines) -> None:
    send(serve(note), "resources/read", {"uri": "notes://hunter2"})
    (line,) = lines()
    assert line["handler"] == "note"
    assert "hunter2" not in str(line)


@pytest.mark.parametrize("name", ["", "hunter2 hunter2", "x" * 65, "a\nb", 7, None])
def test_an_id_that_looks_like_none_is_left_out(lines: Lines, name: object) -> None:
    send(serve(add), "tools/list", context={"requestId": name})
    assert "correlation_id" not in lines()[0]


@pytest.mark.parametrize(
    ("options", "said", "method"),
    [
        ({"headers": {"origin": "https://evil.example"}}, "refused: 403 origin", None),
        ({"http_method": "GET"}, "refused: 405 http_method", None),
        (
            {
                "http_method": "OPTIONS",
                "headers": {"origin": "http://x.example", "access-control-request-method": "POST"},
            },
            "answered: complete",
            "preflight",
        ),
    ],
)
def test_what_http_alone_decides_is_a_line_too(
    lines: Lines, options: dict[str, Any], said: str, method: str | None
) -> None:
    with deployed(MCP_ALLOWED_ORIGINS="http://x.example"):
        send(serve(add), "tools/list", **options)
    (line,) = lines()
    assert (line["said"], line.get("method"), line["at"]) == (said, method, "INFO")
    assert "evil" not in str(line)


@pytest.mark.parametrize(("path", "told"), [("oauth-protected-resource", "metadata"), ("hunter2", None)])
def test_metadata_is_a_line_too(lines: Lines, path: str, told: str | None) -> None:
    event = wire.event("", http_method="GET")
    where = {
        "MCP_JWT_ISSUER": "https://i.example",
        "MCP_JWT_AUDIENCE": "a",
        "MCP_RESOURCE_URL": "https://m.example/mcp",
    }
    with deployed(MCP_AUTH_MODE="jwt", **where):
        serve(add)({**event, "rawPath": f"/.well-known/{path}"}, wire.Context())
    (line,) = lines()
    assert (line.get("method"), line["status"]) == (told, 200 if told else 404)
    assert "hunter2" not in str(line)


def test_a_notification_is_a_line_too(lines: Lines) -> None:
    body = json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "hunter2"}})
    serve(add)(wire.event(body), wire.Context())
    (line,) = lines()
    assert (line["method"], line["outcome"], line["status"]) == ("notifications/cancelled", "complete", 202)


def test_a_crash_tells_type_and_frames_and_not_a_word_of_its_text(lines: Lines) -> None:
    send(serve(broken), "tools/call", {"name": "broken", "arguments": {"a": 7}})
    (line,) = lines()
    assert (line["outcome"], line["reason"], line["status"], line["at"]) == ("crashed", "LookupError", 200, "ERROR")
    assert line["said"].startswith(f"failed: LookupError at {__file__}:")
    assert "hunter2" not in str(line)


def test_a_state_that_is_too_large_is_told_to_the_author(lines: Lines) -> None:
    Conversation(serve(hoard)).call()
    (line,) = lines()
    assert (line["outcome"], line["tool_error"], line["at"]) == ("complete", True, "ERROR")
    assert "keep references in the state" in line["said"]


class Vault:
    """A KMS that fails as it is told."""

    id = "vault"

    def __init__(self, failure: Exception) -> None:
        self.failure: Exception | None = failure

    def generate(self, _context: dict[str, str]) -> tuple[bytes, bytes]:
        if self.failure:
            raise self.failure
        return b"k" * 32, b"w"

    def unwrap(self, _wrapped: bytes, _context: dict[str, str]) -> bytes:
        if self.failure:
            raise self.failure
        return b"k" * 32


@pytest.mark.parametrize(
    ("failure", "reason", "status"),
    [
        (TemporarilyUnavailable("kms:ThrottlingException"), "kms:ThrottlingException", 503),
        (Misconfigured("kms:AccessDeniedException"), "kms:AccessDeniedException", 500),
        (OSError("hunter2"), "wrapping:OSError", 503),
    ],
)
def test_what_kms_refuses_is_told_and_counted(lines: Lines, failure: Exception, reason: str, status: int) -> None:
    Conversation(serve(book, wrapping=[Vault(failure)])).call(city="Lisbon")
    (line,) = lines()
    assert (line["outcome"], line["reason"], line["status"], line["at"]) == ("failed", reason, status, "ERROR")
    assert (line["kms_calls"], line.get("misconfigured")) == (1, True if status == 500 else None)
    assert "hunter2" not in str(line)


def test_kms_is_counted_in_the_request_that_waited_for_it(lines: Lines) -> None:
    Conversation(serve(book)).call(city="Lisbon").accept(seat={"seat": "window"})
    assert [line["kms_calls"] for line in lines()] == [1, 0]
    assert lines()[0]["kms_ms"] > 0


def test_a_failure_of_kms_that_an_older_key_bridges_is_counted_all_the_same() -> None:
    notes: list[Notes] = []
    vault, clock = Vault(OSError()), [1_785_000_000.0]
    vault.failure = None
    function = serve(book, wrapping=[vault], now=lambda: clock[0])
    function._observe = notes.append  # noqa: SLF001 - what the line does not say, the metrics do
    for _ in range(2):
        send(function, "tools/call", {"name": "book", "arguments": {"city": "Lisbon"}})
        vault.failure = OSError()
        clock[0] += 1000
    assert [(note.outcome, note.kms_failures) for note in notes] == [("input_required", 0), ("input_required", 1)]


def test_who_observes_costs_nobody_an_answer() -> None:
    def fail(_notes: Notes) -> None:
        raise OSError

    function = serve(add)
    function._observe = fail  # noqa: SLF001 - as a closed stdout would
    assert send(function, "tools/call", {"name": "add", "arguments": {"a": 1}})["statusCode"] == 200


def test_only_the_first_request_of_an_environment_is_cold(lines: Lines) -> None:
    function = serve(add)
    for _ in range(3):
        send(function, "tools/list")
    send(function.fresh(), "tools/list")
    assert [line["cold_start"] for line in lines()] == [True, False, False, True]


def test_nobody_waited_for_an_environment_that_was_there_before(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_LAMBDA_INITIALIZATION_TYPE", "provisioned-concurrency")
    send(serve(add), "tools/list")
    assert lines()[0]["cold_start"] is False


# ---- The trace


@pytest.mark.parametrize(
    ("traceparent", "told"),
    [
        (TRACEPARENT, TRACE),
        (f"cc-{TRACE}-00f067aa0ba902b7-00", TRACE),
        (f"ff-{TRACE}-00f067aa0ba902b7-01", None),
        (f"00-{'0' * 32}-00f067aa0ba902b7-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (TRACEPARENT.upper(), None),
        (TRACEPARENT + "-hunter2", None),
        (TRACEPARENT + "\n", None),
        ({"hunter2": 1}, None),
    ],
)
def test_the_clients_trace_is_told_if_it_is_one(lines: Lines, traceparent: object, told: str | None) -> None:
    send(serve(add), "tools/list", meta={"traceparent": traceparent})
    assert lines()[0].get("trace_id") == told


def test_without_one_the_trace_is_that_of_x_ray(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    root = "1-5759e988-bd862e3fe1be46a994272793"
    monkeypatch.setenv("_X_AMZN_TRACE_ID", f"Root={root};Parent=3995c3f42cd8ad8;Sampled=1")
    send(serve(add), "tools/list")
    send(serve(add), "tools/list", meta={"traceparent": TRACEPARENT})
    assert [line["trace_id"] for line in lines()] == [root, TRACE]


# ---- The endpoint


class Invoke:
    """Lambda's Invoke API, before one function; keeps what it was given."""

    def __init__(self, function: LambdaFunction) -> None:
        self.function, self.events = function, list[Any]()

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: ARG002, N803 - boto3's names
        self.events.append(json.loads(Payload))
        answer = self.function(self.events[-1], wire.Context())
        return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(answer).encode())}


def door(*handlers: Any) -> tuple[LambdaFunction, Invoke]:  # noqa: ANN401 - tools, prompts and resources
    found, invoke = Settings(stack="local", auth_mode="none"), Invoke(serve(*handlers))
    front = FrontDoor(catalog.of(handlers, "here"), found, lambda: invoke, None)
    return LambdaFunction(lambda _name: Endpoint(found, front.answer)), invoke


def test_a_call_is_a_line_at_the_endpoint_and_one_at_the_function_under_the_same_ids(lines: Lines) -> None:
    endpoint, invoke = door(add, note)
    params, meta = {"name": "add", "arguments": {"a": 1}}, {"traceparent": TRACEPARENT, "tracestate": "a=b"}
    send(endpoint, "tools/call", params, meta=meta, context={"requestId": "JKJa="})
    inner, outer = lines()
    assert (inner["outcome"], outer["outcome"]) == ("complete", "forwarded")
    assert "forward_ms" not in inner
    assert 0 < outer["forward_ms"] <= outer["duration_ms"]
    for told in (inner, outer):
        assert (told["handler"], told["correlation_id"], told["trace_id"]) == ("add", "JKJa=", TRACE)
    (event,) = invoke.events
    assert meta.items() <= json.loads(event["body"])["params"]["_meta"].items()


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("resources/read", {"uri": "notes://hunter2"}, "note"),
        ("resources/read", {"uri": "rules://house"}, "rules"),
        ("prompts/get", {"name": "brief", "arguments": {"topic": "hunter2"}}, "brief"),
        ("tools/call", {"name": "hunter2"}, "unknown"),
        ("resources/read", {"uri": "hunter2://x"}, "unknown"),
        ("tools/list", {}, None),
    ],
)
def test_the_endpoint_names_what_its_catalog_names(
    lines: Lines, method: str, params: dict[str, Any], name: str | None
) -> None:
    @resource("rules://house")
    def rules() -> str:
        return "no smoking"

    endpoint, _invoke = door(add, brief, note, rules)
    send(endpoint, method, params)
    assert lines()[-1].get("handler") == name
    assert "hunter2" not in str(lines())


def test_the_endpoint_says_how_long_it_waited_in_vain(lines: Lines) -> None:
    endpoint, invoke = door(add)
    invoke.function = LambdaFunction(lambda _name: Endpoint(Settings(stack="x"), lambda _request: None))  # type: ignore[arg-type, return-value]
    del invoke.function  # so that invoking fails, as an outage would
    send(endpoint, "tools/call", {"name": "add", "arguments": {"a": 1}})
    (line,) = lines()
    assert (line["outcome"], line["reason"], line["handler"]) == ("failed", "invoke_AttributeError", "add")
    assert line["forward_ms"] > 0


# ---- The metrics


def test_a_request_that_went_well_makes_one_blob() -> None:
    notes = Notes.of(method="tools/call", handler="add", round=1, outcome="complete", status=200, seconds=0.0125)
    assert list(measured(notes, endpoint=False)) == [
        ({"handler": "add"}, {"Requests": ("Count", 1), "Latency": ("Milliseconds", 12.5)})
    ]


@pytest.mark.parametrize(
    ("notes", "dimensions", "metrics"),
    [
        (Notes.of(outcome="complete", round=3, flow="x", status=200), {"handler": "none"}, {"Rounds": 3}),
        (Notes.of(outcome="input_required", round=3, flow="x", status=200), {"handler": "none"}, {"Rounds": 0}),
        (Notes.of(outcome="failed", status=503, kms_calls=2, kms_failures=2, kms_seconds=0.5), {},
            {"Failed": 1, "KmsFailures": 2, "KmsLatency": 500, "Misconfigured": 0, "Crashed": 0}),
        (Notes.of(outcome="failed", status=500, misconfigured=True), {}, {"Failed": 1, "Misconfigured": 1}),
        (Notes.of(outcome="crashed", status=500), {}, {"Failed": 1, "Crashed": 1, "Misconfigured": 0}),
        (Notes.of(outcome="failed", status=200), {}, {"Failed": 1}),  # as clients of 2025 are answered
        (Notes.of(outcome="complete", status=200, cold_start=True), {}, {"ColdStarts": 1, "Failed": 0}),
        (Notes.of(outcome="refused", status=400, code=-32602), {"code": "-32602"}, {"Refused": 1}),
        (Notes.of(outcome="refused", status=200, code=-32602), {"code": "-32602"}, {"Refused": 1}),
        (Notes.of(outcome="refused", status=405), {"code": "http"}, {"Refused": 1}),
    ],
)  # fmt: skip
def test_what_happened_is_counted_where_an_alarm_finds_it(
    notes: Notes, dimensions: dict[str, str], metrics: dict[str, float]
) -> None:
    found = dict[str, tuple[str, float]]()
    for under, measures in measured(notes, endpoint=False):
        if under == dimensions:
            found |= measures
    assert {name: found.get(name, ("", 0))[1] for name in metrics} == metrics


def test_the_endpoint_counts_under_a_name_of_its_own() -> None:
    told = Notes.of(handler="add", outcome="forwarded", status=200)
    ((dimensions, _measures), *_rest) = measured(told, endpoint=True)
    assert dimensions == {"handler": "endpoint"}


# ---- Who is paged


def paging() -> set[str]:
    """Name the metrics of functions that an alarm of template.yaml looks at."""
    alarms = agreement.read(Path(__file__).parent.parent).of_type("AWS::CloudWatch::Alarm").values()
    return {alarm["MetricName"] for alarm in alarms if alarm["Namespace"] == "mcp-functions"}


@pytest.fixture
def counted() -> Iterator[Counter[str]]:
    """Count what the metrics without a dimension of their own count of a test's requests."""
    counts = Counter[str]()

    def count(notes: Notes) -> None:
        for dimensions, measures in measured(notes, endpoint=False):
            counts.update({name: int(value) for name, (_unit, value) in measures.items() if not dimensions})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gateway.LambdaFunction, "_tell", lambda _function, notes: count(notes))
        yield counts


@tool(single_use="replay")
def pay(*, elicit: Elicit, step: Step) -> str:
    elicit("seat", "Which?", Seat)
    return str(step("pay", lambda: "paid"))


def test_what_clients_cause_pages_nobody(counted: Counter[str]) -> None:
    function = serve(book).fresh()
    talk = Conversation(function).call(city="Lisbon")
    for at in range(60, 84, 4):
        talk.tamper(lambda token, at=at: f"{token[:at]}{'AAAA' if token[at] != 'A' else 'BBBB'}{token[at + 4 :]}")  # type: ignore[misc]
    assert [response["statusCode"] for _event, response in talk.rounds[1:]] == [400, 400, 400, 503, 503, 503]
    Conversation(function, capabilities={}).call(city="Lisbon")
    Conversation(function).call(city=7)
    busy = Conversation(serve(pay)).call().go_on()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(single_use, "_claim", refuse)
        busy.accept(seat={"seat": "window"})
    assert busy.status == 503
    assert {name for name in paging() if counted[name]} == set()


def refuse(*_asked: object, **_more: object) -> None:
    raise Busy("used_busy")  # noqa: EM101 - an enumerated word


def test_what_the_server_does_wrong_pages_somebody(counted: Counter[str]) -> None:
    Conversation(serve(broken)).call(a=1)
    assert {name for name in paging() if counted[name]} == {"Failed"}
    Conversation(serve(book, wrapping=[Vault(OSError())])).call(city="Lisbon")
    Conversation(serve(book, wrapping=[Vault(Misconfigured("kms:AccessDeniedException"))])).call(city="Lisbon")
    assert {name for name in paging() if counted[name]} == {"Failed", "Misconfigured", "KmsFailures"}


# ---- Who tells it: the environment decides, when the function is loaded

SHOP = '''
from mcp_functions import serve, tool
{more}
@tool
def add(a: int) -> str:
    """Add."""
    return str(a + 1)

handler = serve(add)
'''
RUN = """
import json, sys
import app
loaded = set(sys.modules)
event, context = json.loads(sys.stdin.read()), type("C", (), {{
    "function_name": "shop-add", "aws_request_id": "id", "get_remaining_time_in_millis": lambda self: 9000}})()
{before}
statuses = [app.handler(event, context)["statusCode"] for _ in range(2)]
after = sorted(set(sys.modules) - loaded)
sys.stderr.write(json.dumps({{"status": statuses, "at_init": sorted(loaded), "after": after}}))
"""
LINES = {"POWERTOOLS_LOG_LEVEL": "INFO"}
METRICS = {"POWERTOOLS_METRICS_NAMESPACE": "mcp-functions"}
JSON_LOGS = """
import logging
from awslambdaric.lambda_runtime_log_utils import JsonFormatter
to = logging.StreamHandler(sys.stdout)
to.setFormatter(JsonFormatter()); to.terminator = ""
logging.root.addHandler(to); logging.root.setLevel("INFO")
"""


class Ran:
    """What a function wrote in a process of its own, for two requests."""

    def __init__(self, folder: Path, variables: dict[str, str], more: str = "", before: str = "") -> None:
        (folder / "app.py").write_text(SHOP.format(more=more), encoding="utf-8")
        event = wire.event(wire.message("tools/call", {"name": "add", "arguments": {"a": 1}}))
        ran = subprocess.run(  # noqa: S603 - ourselves
            [sys.executable, "-W", "error", "-c", RUN.format(before=before)],
            input=json.dumps(event), capture_output=True, check=True, text=True, cwd=folder,
            env={"PATH": os.environ["PATH"], "MCP_STACK": "shop", "MCP_AUTH_MODE": "none", **variables},
        )  # fmt: skip
        report = json.loads(ran.stderr[ran.stderr.index('{"status"') :])
        assert report["status"] == [200, 200]
        self.at_init, self.after = set(report["at_init"]), set(report["after"])
        written = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
        self.blobs = [line for line in written if "_aws" in line]
        self.lines = [line for line in written if "outcome" in line]
        self.others = [line for line in written if line not in self.blobs + self.lines]

    @property
    def fields(self) -> set[str]:
        formats = {"timestamp", "level", "logger", "service", "requestId"}
        return set(self.lines[0]) - formats


@pytest.mark.parametrize(
    ("variables", "lines", "blobs"),
    [
        ({}, 0, 0),
        ({"AWS_LAMBDA_LOG_LEVEL": "WARN"}, 0, 0),
        ({"POWERTOOLS_LOG_LEVEL": "WARNING"}, 0, 0),
        ({**METRICS, "POWERTOOLS_METRICS_DISABLED": "true", "POWERTOOLS_LOG_LEVEL": "WARNING"}, 0, 0),
        ({**METRICS, "POWERTOOLS_DEV": "true"}, 0, 0),
        ({**LINES, "AWS_LAMBDA_LOG_LEVEL": "ERROR"}, 0, 0),
        (LINES, 2, 0),
        ({"POWERTOOLS_LOG_LEVEL": "debug", "AWS_LAMBDA_LOG_LEVEL": "INFO"}, 2, 0),
        (METRICS, 0, 3),
        ({**METRICS, "AWS_LAMBDA_LOG_LEVEL": "INFO"}, 2, 3),
        ({**METRICS, "AWS_LAMBDA_LOG_LEVEL": "INFO", "POWERTOOLS_LOG_LEVEL": "WARNING"}, 0, 3),
    ],
)
def test_the_environment_says_who_tells_and_powertools_is_never_imported(
    tmp_path: Path, variables: dict[str, str], *, lines: int, blobs: int
) -> None:
    ran = Ran(tmp_path, variables)
    assert (len(ran.lines), len(ran.blobs)) == (lines, blobs)
    assert not [name for name in ran.after if name.startswith("mcp_functions.observing")]
    never = ("aws_lambda_powertools", "aws_xray_sdk", "boto3", "pydantic", "asyncio")
    assert not [name for name in ran.at_init | ran.after if name.startswith(never)]


def test_lines_and_metrics_have_the_form_that_cloudwatch_reads(tmp_path: Path) -> None:
    ran = Ran(tmp_path, {**LINES, **METRICS, "POWERTOOLS_SERVICE_NAME": "a-shop"})
    cold, warm = ran.lines
    assert (cold["level"], cold["logger"], cold["service"], cold["handler"]) == (
        "INFO",
        "mcp_functions",
        "a-shop",
        "add",
    )
    assert (cold["cold_start"], warm["cold_start"]) == (True, False)
    assert cold["timestamp"].endswith("+00:00")
    requests, started, _again = ran.blobs
    (directive,) = requests["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "mcp-functions"
    assert [sorted(names) for names in directive["Dimensions"]] == [["handler", "service"]]
    assert (requests["service"], requests["handler"], requests["Requests"]) == ("a-shop", "add", [1.0])
    assert (started["service"], started["ColdStarts"]) == ("a-shop", [1.0])
    assert [names for directive in started["_aws"]["CloudWatchMetrics"] for names in directive["Dimensions"]] == [
        ["service"]
    ]


def test_lambdas_own_formatter_says_the_same(tmp_path: Path) -> None:
    ours = Ran(tmp_path, {**LINES, **METRICS})
    lambdas = Ran(tmp_path, {"AWS_LAMBDA_LOG_LEVEL": "INFO"}, "", JSON_LOGS)
    both = Ran(tmp_path, {**LINES, "AWS_LAMBDA_LOG_LEVEL": "INFO"}, "", JSON_LOGS)
    assert ours.fields == lambdas.fields == both.fields
    assert {line["logger"] for line in lambdas.lines} == {"mcp_functions"}
    assert (len(both.lines), lambdas.blobs) == (2, [])  # none is written twice


KEYS = {"method": "tools/call", "handler": "add", "code": -32602, "kms_ms": 1.5, "cold_start": True, "flow": "é\u2028"}


@pytest.mark.parametrize("traced", [None, "Root=1-6a17f3c2-0f7a2bd61f3a1f0c2e4d5b6a;Parent=5;Sampled=1"])
def test_a_line_is_what_powertools_logger_would_write(monkeypatch: pytest.MonkeyPatch, traced: str | None) -> None:
    monkeypatch.delenv("_X_AMZN_TRACE_ID", raising=False)
    if traced:
        monkeypatch.setenv("_X_AMZN_TRACE_ID", traced)
    to = io.StringIO()
    logger = Logger(service=f"shop{traced}", use_rfc3339=True, utc=True, location=None, level="INFO", stream=to)
    logger.append_keys(service="shop", logger="mcp_functions")
    logger.error("refused: -32602 expired", extra=KEYS)
    theirs = json.loads(to.getvalue())
    at = datetime.fromisoformat(theirs["timestamp"]).timestamp() + 0.0004  # of a millisecond nothing is told
    assert json.loads(writing.line("shop", "ERROR", "refused: -32602 expired", at, KEYS)) == theirs


def test_metrics_are_what_powertools_would_write() -> None:
    theirs = AmazonCloudWatchEMFProvider(namespace="tools", service="shop")
    theirs.add_dimension("handler", "add")
    theirs.add_metric("Requests", "Count", 1)
    theirs.add_metric("Latency", "Milliseconds", 12.5)
    at = time.time()
    theirs.set_timestamp(int(at * 1000))
    measures = {"Requests": ("Count", 1.0), "Latency": ("Milliseconds", 12.5)}
    ours = writing.blob("tools", "shop", {"handler": "add"}, measures, at)
    assert json.loads(ours) == theirs.serialize_metric_set()


def test_a_request_is_told_in_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    wrote: list[str] = []
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(write=wrote.append, flush=lambda: None))
    notes = Notes.of(handler="add", outcome="complete", status=200, cold_start=True)
    tell = writing.observer("shop", logging.INFO, "tools", endpoint=False, now=lambda: 0)
    try:
        tell(notes)
        logging.getLogger("mcp_functions.keys").warning("a key of %s", "yesterday")
    finally:
        undone(logging.getLogger("mcp_functions"))
    told, warned = wrote
    assert [json.loads(line).get("outcome", "metrics") for line in told.splitlines()] == ["complete", *["metrics"] * 2]
    assert (json.loads(warned)["message"], json.loads(warned)["level"]) == ("a key of yesterday", "WARNING")


def undone(log: logging.Logger) -> None:
    """Give the package's logger back to whoever else reads it."""
    log.handlers.clear()
    log.propagate = True
    log.setLevel(logging.NOTSET)


AUTHORS = """
from aws_lambda_powertools import Logger, Metrics
logger, metrics = Logger(), Metrics()

@tool
def order(a: int) -> str:
    return ""
"""


def test_an_authors_own_logger_and_metrics_stay_the_authors(tmp_path: Path) -> None:
    more = AUTHORS.replace("@tool", "metrics.add_metric('Orders', 'Count', 1); logger.append_keys(order=7)\n\n@tool")
    before = "app.logger.info('mine'); app.metrics.add_dimension('shop', 'x')"
    flush = "import atexit; atexit.register(app.metrics.flush_metrics)"
    service = {"POWERTOOLS_SERVICE_NAME": "shop"}
    ran = Ran(tmp_path, {**LINES, **METRICS, **service}, more, f"{before}\n{flush}")
    (mine,) = (line for line in ran.others if line["level"] == "INFO")
    assert (mine["message"], mine["order"], mine["service"]) == ("mine", 7, "shop")
    assert all("order" not in line for line in ran.lines)
    assert [line["message"] for line in ran.lines] == ["answered: complete"] * 2
    *ours, theirs = ran.blobs
    assert (theirs["Orders"], theirs["shop"]) == ([1.0], "x")
    assert all("Orders" not in blob and "shop" not in blob for blob in ours)
    assert "Requests" not in theirs
