"""The log line of a request: its fields, the loggers that write it, and the metrics that operators derive from it.

No `from __future__ import annotations` here, because most authors' modules have none.
"""

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from awslambdaric.lambda_runtime_log_utils import JsonFormatter  # type: ignore[import-untyped]  # it has no types
from pydantic import BaseModel

from mcp_functions import Elicit, Step, prompt, resource, serve, serve_catalog, tool
from mcp_functions.dispatch import single_use
from mcp_functions.front_door import FrontDoor
from mcp_functions.handlers import catalog
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.observability.lines import digest
from mcp_functions.protocol.errors import Busy, Misconfigured, TemporarilyUnavailable
from mcp_functions_harness.testing import Conversation, deployed
from tests.docs import powertools
from tests.support import filters, wire
from tests.support.endpoints import make_function
from tests.support.settings import make_settings

ROOT = Path(__file__).parents[2]
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
COMMON_FIELDS = {
    "outcome",
    "status",
    "request_bytes",
    "response_bytes",
    "duration_ms",
    "kms_calls",
    "kms_ms",
    "cold_start",
}


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
    if step("second", lambda: 2) and not _continued:
        _continued.append(True)
        step.shed()
    return "done"


_continued: list[bool] = []


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
    """Return the fields of the lines so far, with message and level among them."""
    plain = logging.LogRecord("", 0, "", 0, "", (), None).__dict__.keys()
    with caplog.at_level(logging.INFO, "mcp_functions"):

        def told() -> list[dict[str, Any]]:
            records = [record for record in caplog.records if hasattr(record, "outcome")]
            fields = [{k: v for k, v in vars(r).items() if k not in plain and k != "message"} for r in records]
            return [{**f, "message": r.getMessage(), "at": r.levelname} for f, r in zip(fields, records, strict=True)]

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


def test_each_request_writes_one_log_line(lines: Lines) -> None:
    response = send(serve(add), "tools/call", {"name": "add", "arguments": {"a": 40}}, context={"requestId": "JKJa="})
    (line,) = lines()
    own = COMMON_FIELDS | {"method", "handler", "round", "correlation_id"}
    assert line.keys() - {"message", "at"} == own | CALL_ATTRIBUTES.keys()
    assert (line["message"], line["at"]) == ("answered: complete", "INFO")
    assert (line["method"], line["handler"], line["round"], line["outcome"]) == ("tools/call", "add", 1, "complete")
    assert (line["status"], line["response_bytes"]) == (200, len(response["body"]))
    assert line["correlation_id"] == "JKJa="
    assert (line["kms_calls"], line["kms_ms"], line["cold_start"]) == (0, 0, True)
    assert line["duration_ms"] > 0


@pytest.mark.parametrize("encoded", [False, True])
def test_the_size_of_a_body_is_counted_in_bytes(lines: Lines, *, encoded: bool) -> None:
    body = json.dumps(wire.message("tools/call", {"name": "add", "arguments": {"a": "ż"}}), ensure_ascii=False)
    event = wire.event(body, headers=wire.headers(json.loads(body)), base64=encoded)
    serve(add)(event, wire.Context())
    (line,) = lines()
    assert 0 <= line["request_bytes"] - len(body.encode()) <= (2 if encoded else 0)


def test_the_log_lines_of_a_conversation_have_the_same_flow(lines: Lines) -> None:
    Conversation(serve(book)).call(city="Lisbon").accept(seat={"seat": "window"})
    first, second = lines()
    assert (first["outcome"], first["round"]) == ("input_required", 1)
    assert (second["outcome"], second["round"]) == ("complete", 2)
    assert first["flow"] == second["flow"]
    assert "jti" not in first
    assert second["jti"]
    assert (first["cold_start"], second["cold_start"]) == (True, False)


def test_the_flow_of_a_log_line_is_a_digest_of_the_flow_in_the_audit(lines: Lines) -> None:
    told: list[Any] = []
    Conversation(serve(book, audit=told.append)).call(city="Lisbon")
    (line,) = lines()
    assert line["flow"] == digest(told[0].flow) != told[0].flow


def test_a_round_that_ends_without_a_question_is_logged_as_shed(lines: Lines) -> None:
    _continued.clear()
    Conversation(serve(work)).call(hours=3).go_on()
    assert [line["outcome"] for line in lines()] == ["shed", "complete"]


def test_the_line_distinguishes_a_failed_tool_from_a_failed_request(lines: Lines) -> None:
    Conversation(serve(add)).call(a="no number")
    (line,) = lines()
    assert (line["outcome"], line["tool_error"], line["at"]) == ("complete", True, "INFO")


def test_the_line_names_the_flow_of_a_refused_state_that_opened(lines: Lines) -> None:
    talk = Conversation(serve(book)).call(city="Lisbon")
    sent = talk.rounds[0][0]
    message = json.loads(sent["body"])
    message["params"] |= {"arguments": {"city": "Porto"}, "requestState": talk.state}
    serve(book)({**sent, "body": json.dumps(message)}, wire.Context("local_book"))
    first, second = lines()
    assert (second["message"], second["at"], second["outcome"]) == ("refused: -32602 arguments", "INFO", "refused")
    assert (second["code"], second["reason"], second["status"]) == (-32602, "arguments", 400)
    assert (second["handler"], second["round"], second["flow"]) == ("book", 2, first["flow"])
    assert second["jti"]


def test_the_line_of_a_state_that_did_not_open_has_only_the_reason(lines: Lines) -> None:
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
def test_an_invented_name_is_logged_as_unknown(lines: Lines, method: str, params: dict[str, Any]) -> None:
    send(serve(add, brief, note), method, params)
    (line,) = lines()
    assert (line["method"] if "hunter2" in method else line["handler"]) == "unknown"
    assert "hunter2" not in str(line)


def test_the_log_shows_an_older_client_by_its_first_method(lines: Lines) -> None:
    send(serve(add), "initialize", headers={"mcp-protocol-version": None})
    (line,) = lines()
    assert (line["method"], line["outcome"]) == ("initialize", "refused")


def test_a_resource_is_logged_by_its_name_and_never_by_its_uri(lines: Lines) -> None:
    send(serve(note), "resources/read", {"uri": "notes://hunter2"})
    (line,) = lines()
    assert line["handler"] == "note"
    assert "hunter2" not in str(line)


@pytest.mark.parametrize("name", ["", "hunter2 hunter2", "x" * 65, "a\nb", 7, None])
def test_a_malformed_id_is_left_out(lines: Lines, name: object) -> None:
    send(serve(add), "tools/list", context={"requestId": name})
    assert "correlation_id" not in lines()[0]


@pytest.mark.parametrize(
    ("options", "message", "method"),
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
def test_a_response_of_the_http_layer_writes_a_log_line(
    lines: Lines, options: dict[str, Any], message: str, method: str | None
) -> None:
    with deployed(MCP_ALLOWED_ORIGINS="http://x.example"):
        send(serve(add), "tools/list", **options)
    (line,) = lines()
    assert (line["message"], line.get("method"), line["at"]) == (message, method, "INFO")
    assert "evil" not in str(line)


@pytest.mark.parametrize(("path", "message"), [("oauth-protected-resource", "metadata"), ("hunter2", None)])
def test_a_request_for_metadata_writes_a_log_line(lines: Lines, path: str, message: str | None) -> None:
    event = wire.event("", http_method="GET")
    where = {
        "MCP_JWT_ISSUER": "https://i.example",
        "MCP_JWT_AUDIENCE": "a",
        "MCP_RESOURCE_URL": "https://m.example/mcp",
    }
    with deployed(MCP_AUTH_MODE="jwt", **where):
        serve(add)({**event, "rawPath": f"/.well-known/{path}"}, wire.Context())
    (line,) = lines()
    assert (line.get("method"), line["status"]) == (message, 200 if message else 404)
    assert "hunter2" not in str(line)


def test_a_notification_writes_a_log_line(lines: Lines) -> None:
    body = json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "hunter2"}})
    serve(add)(wire.event(body), wire.Context())
    (line,) = lines()
    assert (line["method"], line["outcome"], line["status"]) == ("notifications/cancelled", "complete", 202)


def test_the_line_of_a_crash_has_type_and_frames_and_no_text(lines: Lines) -> None:
    send(serve(broken), "tools/call", {"name": "broken", "arguments": {"a": 7}})
    (line,) = lines()
    assert (line["outcome"], line["reason"], line["status"], line["at"]) == ("crashed", "LookupError", 200, "ERROR")
    assert line["message"].startswith(f"failed: LookupError at {__file__}:")
    assert "hunter2" not in str(line)


def test_the_log_names_a_state_that_is_too_large(lines: Lines) -> None:
    Conversation(serve(hoard)).call()
    (line,) = lines()
    assert (line["outcome"], line["tool_error"], line["at"]) == ("complete", True, "ERROR")
    assert "keep references in the state" in line["message"]


class SealFactory:
    """A KMS that raises a given error."""

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
def test_a_refusal_of_kms_is_logged_and_counted(lines: Lines, failure: Exception, reason: str, status: int) -> None:
    Conversation(serve(book, wrapping=[SealFactory(failure)])).call(city="Lisbon")
    (line,) = lines()
    assert (line["outcome"], line["reason"], line["status"], line["at"]) == ("failed", reason, status, "ERROR")
    assert (line["kms_calls"], line["kms_failures"]) == (1, 1)
    assert line.get("misconfigured") is (True if status == 500 else None)
    assert "hunter2" not in str(line)


def test_a_kms_call_is_counted_for_the_request_that_waited_for_it(lines: Lines) -> None:
    Conversation(serve(book)).call(city="Lisbon").accept(seat={"seat": "window"})
    assert [line["kms_calls"] for line in lines()] == [1, 0]
    assert lines()[0]["kms_ms"] > 0


def test_a_failed_kms_call_is_counted_although_an_older_key_is_used(lines: Lines) -> None:
    vault, clock = SealFactory(OSError()), [1_785_000_000.0]
    vault.failure = None
    function = serve(book, wrapping=[vault], now=lambda: clock[0])
    for _ in range(2):
        send(function, "tools/call", {"name": "book", "arguments": {"city": "Lisbon"}})
        vault.failure = OSError()
        clock[0] += 1000
    told = [line for line in lines() if "outcome" in line]
    assert [(line["outcome"], line.get("kms_failures")) for line in told] == [
        ("input_required", None),
        ("input_required", 1),
    ]


def test_only_the_first_request_of_an_environment_is_cold(lines: Lines) -> None:
    function = serve(add)
    for _ in range(3):
        send(function, "tools/list")
    send(function.fresh(), "tools/list")
    assert [line["cold_start"] for line in lines()] == [True, False, False, True]


def test_a_provisioned_environment_is_not_a_cold_start(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_LAMBDA_INITIALIZATION_TYPE", "provisioned-concurrency")
    send(serve(add), "tools/list")
    assert lines()[0]["cold_start"] is False


# ---- The trace


@pytest.mark.parametrize(
    ("traceparent", "message"),
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
def test_a_valid_trace_of_the_client_is_logged(lines: Lines, traceparent: object, message: str | None) -> None:
    send(serve(add), "tools/list", meta={"traceparent": traceparent})
    assert lines()[0].get("trace_id") == message


def test_without_a_client_trace_the_line_has_the_trace_of_x_ray(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    root = "1-5759e988-bd862e3fe1be46a994272793"
    monkeypatch.setenv("_X_AMZN_TRACE_ID", f"Root={root};Parent=3995c3f42cd8ad8;Sampled=1")
    send(serve(add), "tools/list")
    send(serve(add), "tools/list", meta={"traceparent": TRACEPARENT})
    assert [line["trace_id"] for line in lines()] == [root, TRACE]


def test_the_traceparent_header_is_used_only_without_a_valid_one_in_meta(lines: Lines) -> None:
    other = "0af7651916cd43dd8448eb211c80319c"
    for meta in ({}, {"traceparent": "hunter2"}, {"traceparent": f"00-{other}-b7ad6b7169203331-01"}):
        message = wire.message("tools/list", meta=meta)
        serve(add)(wire.event(message, headers={**wire.headers(message), "TraceParent": TRACEPARENT}), wire.Context())
    assert [line["trace_id"] for line in lines()] == [TRACE, TRACE, other]


# ---- OpenTelemetry's names


def conventional(line: dict[str, Any]) -> dict[str, str]:
    return {name: value for name, value in line.items() if "." in name}


CALL_ATTRIBUTES = {"mcp.method.name": "tools/call", "mcp.protocol.version": "2026-07-28", "gen_ai.tool.name": "add"}


def test_a_log_line_has_the_attribute_names_of_opentelemetry(lines: Lines) -> None:
    function = serve(add, brief)
    send(function, "tools/call", {"name": "add", "arguments": {"a": 1}})
    send(function, "tools/call", {"name": "add", "arguments": {"a": "no number"}})
    send(function, "prompts/get", {"name": "brief", "arguments": {"topic": "sun"}})
    send(function, "tools/list")
    called, failed, prompted, listed = map(conventional, lines())
    assert called == CALL_ATTRIBUTES
    assert failed == {**CALL_ATTRIBUTES, "error.type": "tool_error"}
    assert (prompted["mcp.method.name"], prompted["gen_ai.prompt.name"]) == ("prompts/get", "brief")
    assert listed == {"mcp.method.name": "tools/list", "mcp.protocol.version": "2026-07-28"}


def test_the_error_type_is_the_code_and_invented_names_are_left_out(lines: Lines) -> None:
    function = serve(add, broken)
    send(function, "tools/call", {"name": "hunter2"})
    send(function, "hunter2/call")
    send(function, "tools/call", {"name": "broken", "arguments": {"a": 1}})
    function(wire.event("", http_method="PUT"), wire.Context())
    invented, unknown, crashed, put = map(conventional, lines())
    assert invented == {"mcp.method.name": "tools/call", "error.type": "-32602"}
    assert unknown == {"error.type": "-32601"}
    assert crashed == {**CALL_ATTRIBUTES, "gen_ai.tool.name": "broken", "error.type": "tool_error"}, (
        "as the client sees it"
    )
    assert put == {"error.type": "405"}


# ---- The endpoint


class Invoke:
    """Lambda's Invoke API for one function; it keeps the events."""

    def __init__(self, function: LambdaFunction) -> None:
        self.function, self.events = function, list[Any]()

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: ARG002, N803 - boto3's names
        self.events.append(json.loads(Payload))
        answer = self.function(self.events[-1], wire.Context())
        return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(answer).encode())}


def serve_behind_front_door(*handlers: Any) -> tuple[LambdaFunction, Invoke]:  # noqa: ANN401 - tools, prompts and resources
    found, invoke = make_settings(auth_mode="none"), Invoke(serve(*handlers))
    front = FrontDoor(catalog.build(handlers, "here"), found, lambda: invoke)
    return make_function(found, front.answer), invoke


def test_the_endpoint_and_the_function_log_a_call_under_the_same_ids(lines: Lines) -> None:
    endpoint, invoke = serve_behind_front_door(add, note)
    params, meta = {"name": "add", "arguments": {"a": 1}}, {"traceparent": TRACEPARENT, "tracestate": "a=b"}
    send(endpoint, "tools/call", params, meta=meta, context={"requestId": "JKJa="})
    inner, outer = lines()
    assert conventional(inner) == conventional(outer) == CALL_ATTRIBUTES
    assert (inner["outcome"], outer["outcome"]) == ("complete", "forwarded")
    assert (inner["at"], outer["at"]) == ("INFO", "INFO"), "the endpoint has a line of its own if it started cold"
    assert "forward_ms" not in inner
    assert 0 < outer["forward_ms"] <= outer["duration_ms"]
    for told in (inner, outer):
        assert (told["handler"], told["correlation_id"], told["trace_id"]) == ("add", "JKJa=", TRACE)
    (event,) = invoke.events
    assert meta.items() <= json.loads(event["body"])["params"]["_meta"].items()


def test_a_call_that_a_warm_endpoint_forwards_has_one_line_unless_the_level_is_debug(
    lines: Lines, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint, _invoke = serve_behind_front_door(add)
    call = {"name": "add", "arguments": {"a": 1}}
    send(endpoint, "tools/call", call)
    caplog.clear()
    send(endpoint, "tools/call", call)
    assert [line["outcome"] for line in lines()] == ["complete"]
    caplog.set_level(logging.DEBUG, "mcp_functions")
    send(endpoint, "tools/call", call)
    assert [(line["outcome"], line["at"]) for line in lines()[1:]] == [("complete", "INFO"), ("forwarded", "DEBUG")]


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
def test_the_endpoint_logs_the_names_of_its_catalog(
    lines: Lines, method: str, params: dict[str, Any], name: str | None
) -> None:
    @resource("rules://house")
    def rules() -> str:
        return "no smoking"

    endpoint, _invoke = serve_behind_front_door(add, brief, note, rules)
    send(endpoint, method, params)
    assert lines()[-1].get("handler") == name
    assert "hunter2" not in str(lines())


def test_the_endpoint_logs_how_long_it_waited_for_a_failed_call(lines: Lines) -> None:
    endpoint, invoke = serve_behind_front_door(add)
    invoke.function = make_function(make_settings(stack="x"), lambda _request: None)
    del invoke.function  # so that invoking fails, as an outage would
    send(endpoint, "tools/call", {"name": "add", "arguments": {"a": 1}})
    (line,) = lines()
    assert (line["outcome"], line["reason"], line["handler"]) == ("failed", "invoke_AttributeError", "add")
    assert line["forward_ms"] > 0


# ---- Who writes it


SHOP_APP = '''
from mcp_functions import serve, tool

@tool
def add(a: int) -> str:
    """Add."""
    return str(a + 1)

handler = serve(add)
'''
RUNTIME_SCRIPT = """
import json, logging, sys
import app
loaded = set(sys.modules)
event, context = json.loads(sys.stdin.read()), type("C", (), {
    "function_name": "shop_add", "aws_request_id": "id", "get_remaining_time_in_millis": lambda self: 9000})()
from awslambdaric.lambda_runtime_log_utils import JsonFormatter
to = logging.StreamHandler(sys.stdout)
to.setFormatter(JsonFormatter()); to.terminator = ""
logging.root.addHandler(to); logging.root.setLevel(sys.argv[1])
before = set(sys.modules)
statuses = [app.handler(event, context)["statusCode"] for _ in range(2)]
late = [name for name in set(sys.modules) - before if name.startswith("mcp_functions.observability")]
sys.stderr.write(json.dumps({"status": statuses, "loaded": sorted(loaded), "late": late}))
"""


@pytest.mark.parametrize(("level", "told"), [("INFO", 2), ("WARNING", 0)])
def test_the_formatter_of_lambda_writes_the_log_lines_without_another_import(
    tmp_path: Path, level: str, told: int
) -> None:
    (tmp_path / "app.py").write_text(SHOP_APP, encoding="utf-8")
    event = wire.event(wire.message("tools/call", {"name": "add", "arguments": {"a": 1}}))
    ran = subprocess.run(  # noqa: S603 - ourselves
        [sys.executable, "-W", "error", "-c", RUNTIME_SCRIPT, level],
        input=json.dumps(event), capture_output=True, check=True, text=True, cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "MCP_STACK": "shop", "MCP_AUTH_MODE": "none"},
    )  # fmt: skip
    report = json.loads(ran.stderr[ran.stderr.index('{"status"') :])
    assert (report["status"], report["late"]) == ([200, 200], [])
    never = ("aws_lambda_powertools", "aws_xray_sdk", "boto3", "pydantic", "asyncio")
    assert not [name for name in report["loaded"] if name.startswith(never)]
    written = [json.loads(line) for line in ran.stdout.splitlines() if '"outcome"' in line]
    assert [line["cold_start"] for line in written] == [True, False][:told]
    for line in written:
        assert (line["level"], line["logger"], line["handler"]) == ("INFO", "mcp_functions", "add")


class Output:
    """A Powertools Logger and the lines that it wrote."""

    def __init__(self) -> None:
        self._to = io.StringIO()
        self.logger = powertools.logger(stream=self._to)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._to.getvalue().splitlines()]


def test_a_powertools_logger_writes_the_log_line_with_its_fields_as_keys(lines: Lines) -> None:
    out = Output()
    send(
        serve(add, logger=out.logger),
        "tools/call",
        {"name": "add", "arguments": {"a": 40}},
        context={"requestId": "J="},
    )
    send(serve(add), "tools/call", {"name": "add", "arguments": {"a": 40}}, context={"requestId": "J="})
    (theirs,), (ours,) = out.lines, lines()[-1:]
    assert theirs.keys() >= ours.keys() - {"message", "at"}
    assert (theirs["service"], theirs["logger"], theirs["level"]) == (out.logger.service, "mcp_functions", "INFO")
    assert (theirs["message"], theirs["handler"], theirs["correlation_id"]) == ("answered: complete", "add", "J=")


def test_a_crash_is_an_error_in_the_logger_of_the_author() -> None:
    out = Output()
    send(serve(broken, logger=out.logger), "tools/call", {"name": "broken", "arguments": {"a": 7}})
    (line,) = out.lines
    assert (line["level"], line["outcome"], line["reason"]) == ("ERROR", "crashed", "LookupError")
    assert "exception" not in line


def test_a_standard_logger_writes_the_log_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "shop"):
        send(serve(add, logger=logging.getLogger("shop")), "tools/list")
    told = [(record.name, hasattr(record, "outcome")) for record in caplog.records]
    assert told == [
        ("mcp_functions", False),
        ("shop", True),
    ]  # the line that warns of AuthMode none belongs to no request


def test_the_logger_of_the_author_writes_the_log_line_of_the_endpoint(tmp_path: Path) -> None:
    out = Output()
    (tmp_path / "catalog.json").write_text(json.dumps(catalog.build([add], "add")), encoding="utf-8")
    with deployed():
        send(serve_catalog(tmp_path / "catalog.json", logger=out.logger), "tools/list")
    assert [(line["method"], line["outcome"]) for line in out.lines] == [("tools/list", "complete")]


def test_log_lines_of_the_author_have_the_correlation_id_only_during_a_request() -> None:
    out = Output()
    out.logger.append_keys(order=7)

    @tool
    def note_down() -> str:
        out.logger.info("mine")
        return str(out.logger.get_correlation_id())

    function = serve(note_down, logger=out.logger)
    for request_id in ("first=", "second=", "no id"):
        send(function, "tools/call", {"name": "note_down"}, context={"requestId": request_id})
    out.logger.info("between requests")
    told = [line.get("correlation_id") for line in out.lines]
    assert told == ["first=", "first=", "second=", "second=", None, None, None]
    assert {line["order"] for line in out.lines} == {7}  # the author's own keys are there, before and after
    assert [line["message"] for line in out.lines][::2] == ["mine", "mine", "mine", "between requests"]


def test_an_authors_correlation_id_is_restored_after_a_request() -> None:
    out = Output()
    out.logger.set_correlation_id("batch-7")
    send(serve(add, logger=out.logger), "tools/list", context={"requestId": "J="})
    out.logger.info("mine")
    assert [line["correlation_id"] for line in out.lines] == ["J=", "batch-7"]


class Broken:
    """A logger of which nothing works."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        def fail(*_args: object, **_options: object) -> None:
            raise OSError(name)

        return fail


def test_a_logger_that_raises_does_not_fail_the_request() -> None:
    function = serve(add, logger=Broken())
    context = {"requestId": "J="}
    assert send(function, "tools/call", {"name": "add", "arguments": {"a": 1}}, context=context)["statusCode"] == 200


def test_a_conversation_has_the_exception_for_every_kind_of_logger() -> None:
    wrapping = [SealFactory(Misconfigured("kms:AccessDeniedException"))]
    talk = Conversation(serve(book, wrapping=wrapping, logger=Output().logger)).call(city="Lisbon")
    with pytest.raises(AssertionError, match="kms:AccessDeniedException"):
        talk.result  # noqa: B018 - there is none, and it says why


# ---- What operators count: the metric filters of template.yaml, on lines that were written


def format_like_lambda(record: logging.LogRecord) -> str:
    """Format a record as Lambda's runtime does, for a function with LogFormat JSON."""
    record.aws_request_id = "00000000-0000-0000-0000-000000000000"
    return str(JsonFormatter().format(record))


@pytest.fixture(params=["lambda", "powertools"])
def count_metrics(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Callable[..., dict[str, float]]:
    """Answers requests, and says what the template's filters count in the lines of these."""

    def count(*handlers: Any, requests: Callable[[LambdaFunction], object], **options: Any) -> dict[str, float]:  # noqa: ANN401 - what serve takes
        out = Output()
        logger = out.logger if request.param == "powertools" else None
        with caplog.at_level(logging.INFO, "mcp_functions"):
            caplog.clear()
            requests(serve(*handlers, logger=logger, **options))
        written = out.lines if logger else [json.loads(format_like_lambda(record)) for record in caplog.records]
        assert [line for line in written if "outcome" in line]
        return filters.count_metrics(written)

    return count


CountMetrics = Callable[..., dict[str, float]]


def call_of(name: str, **arguments: object) -> Callable[[LambdaFunction], object]:
    return lambda function: send(function, "tools/call", {"name": name, "arguments": arguments})


def test_a_successful_request_is_counted_only_as_a_cold_start(count_metrics: CountMetrics) -> None:
    assert count_metrics(add, requests=call_of("add", a=1)) == {"ColdStarts": 1}


def test_only_the_first_of_three_requests_is_counted_as_a_cold_start(count_metrics: CountMetrics) -> None:
    assert count_metrics(add, requests=lambda function: [send(function, "tools/list") for _ in range(3)]) == {
        "ColdStarts": 1
    }


@pytest.mark.parametrize(
    "request_",
    [
        call_of("hunter2"),
        lambda function: send(function, "tools/list", http_method="GET"),
        lambda function: send(function, "tools/list", headers={"mcp-protocol-version": "1999-01-01"}),
        lambda function: send(function, "hunter2/call"),
    ],
)
def test_a_client_error_is_counted_only_as_refused(
    count_metrics: CountMetrics, request_: Callable[[LambdaFunction], object]
) -> None:
    assert count_metrics(add, requests=request_) == {"Refused": 1, "ColdStarts": 1}


def test_a_crash_is_counted_as_crashed_and_as_failed(count_metrics: CountMetrics) -> None:
    assert count_metrics(broken, requests=call_of("broken", a=1)) == {"Crashed": 1, "Failed": 1, "ColdStarts": 1}


def test_denied_access_to_kms_is_counted_as_a_misconfiguration(count_metrics: CountMetrics) -> None:
    wrapping = [SealFactory(Misconfigured("kms:AccessDeniedException"))]
    metrics = count_metrics(book, requests=call_of("book", city="Lisbon"), wrapping=wrapping)
    assert metrics == {"Misconfigured": 1, "Outages": 1, "Failed": 1, "ColdStarts": 1}


@pytest.mark.parametrize(
    "reason", ["kms:ThrottlingException", "table:InternalServerError", "blobs:503"], ids=["kms", "table", "blobs"]
)
def test_an_outage_is_counted_for_each_request(count_metrics: CountMetrics, reason: str) -> None:
    wrapping = [SealFactory(TemporarilyUnavailable(reason))]
    metrics = count_metrics(book, requests=call_of("book", city="Lisbon"), wrapping=wrapping)
    assert metrics == {"Outages": 1, "Failed": 1, "ColdStarts": 1}


def test_log_lines_of_the_author_are_not_counted() -> None:
    out = Output()

    @out.logger.inject_lambda_context
    def handler(_event: object, _context: object) -> None:
        out.logger.info("mine")

    handler({}, wire.Context())
    assert "cold_start" in out.lines[0]
    assert filters.count_metrics([{**line, "cold_start": True} for line in out.lines]) == {}


@tool(single_use="replay")
def pay(*, elicit: Elicit, step: Step) -> str:
    elicit("seat", "Which?", Seat)
    return str(step("pay", lambda: "paid"))


def send_forged_states(function: LambdaFunction) -> None:
    talk = Conversation(function).call(city="Lisbon")
    for at in range(60, 84, 4):
        talk.tamper(lambda token, at=at: f"{token[:at]}{'AAAA' if token[at] != 'A' else 'BBBB'}{token[at + 4 :]}")  # type: ignore[misc]
    assert [response["statusCode"] for _event, response in talk.rounds[1:]] == [400, 400, 400, 503, 503, 503]
    Conversation(function, capabilities={}).call(city="Lisbon")
    Conversation(function).call(city=7)


def send_while_claimed(function: LambdaFunction) -> None:
    busy = Conversation(function).call().go_on()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(single_use.RoundClaim, "_claim", raise_busy)
        busy.accept(seat={"seat": "window"})
    assert busy.status == 503


def raise_busy(*_asked: object, **_more: object) -> None:
    raise Busy("used_busy")


def test_errors_of_clients_trigger_no_alarm(count_metrics: CountMetrics) -> None:
    assert filters.alarm_metrics() & count_metrics(book, requests=send_forged_states).keys() == set()
    assert filters.alarm_metrics() & count_metrics(pay, requests=send_while_claimed).keys() == set()


def test_errors_of_the_server_trigger_an_alarm(count_metrics: CountMetrics) -> None:
    assert filters.alarm_metrics() & count_metrics(broken, requests=call_of("broken", a=1)).keys() == {"Crashed"}
    wrapping = [SealFactory(Misconfigured("kms:AccessDeniedException"))]
    metrics = count_metrics(book, requests=call_of("book", city="Lisbon"), wrapping=wrapping)
    assert filters.alarm_metrics() & metrics.keys() == {"Misconfigured", "Outages"}


def test_the_filter_reader_refuses_an_unknown_term_even_if_another_term_decides() -> None:
    with pytest.raises(AssertionError, match="not in the subset"):
        filters.matches("{ $.count > 5 && $.handler LIKE a }", {"count": 1})
