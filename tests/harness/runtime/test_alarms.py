"""What the metric filters of template.yaml count in lines that Lambda's runtime and the toolkit wrote.

A failure that an operator must repair is counted for its alarm. A request that correct code answers or refuses is not.
"""

from __future__ import annotations

import json
import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions import tool
from mcp_functions.handlers import catalog
from mcp_functions_harness import Harness
from mcp_functions_harness import catalog as catalogs
from tests.benchmarks import cost
from tests.support import filters, wire

from .conftest import Stack, wait_until, write_project
from .test_behind_the_front_door import FRONT, post

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ASKS = """
from pydantic import BaseModel
from mcp_functions import Elicit, serve, tool

class Seat(BaseModel):
    seat: str

@tool
def asks(city: str, *, elicit: Elicit) -> str:
    return elicit("seat", f"Which seat to {city}?", Seat).seat

handler = serve(asks)
"""
RAISES = """
from mcp_functions import serve, tool

@tool
def raises(city: str) -> str:
    raise LookupError

handler = serve(raises)
"""
ANSWERS = """
import json
def handler(event, context):
    error = {{"code": -32603, "message": "No", "data": {data}}}
    body = json.dumps({{"jsonrpc": "2.0", "id": json.loads(event["body"])["id"], "error": error}})
    return {{"statusCode": 200, "headers": {{"content-type": "application/json"}}, "body": body}}
"""
APPS = {
    "mcp": FRONT,
    "asks": ASKS,
    "raises": RAISES,
    "fails": ANSWERS.format(data="None"),
    "is_busy": ANSWERS.format(data='{"retryable": True}'),
    "lacks_a_module": "import nothing_of_this_name\n",
    "is_no_python": "def broken(:\n",
    "exits": "import os\ndef handler(event, context):\n    os._exit(1)\n",
    "hangs": "import time\ndef handler(event, context):\n    time.sleep(60)\n",
    "is_slow": "import time\ndef handler(event, context):\n    time.sleep(3)\n",
    "starts_slowly": "import time\ntime.sleep(3)\ndef handler(event, context):\n    return {}\n",
    "is_full": ANSWERS.format(data="None"),
}
PROPERTIES = {
    "hangs": "{Timeout: 1}",
    "is_full": "{ReservedConcurrentExecutions: 0}",
    **dict.fromkeys(("asks", "mcp"), "{Environment: {Variables: {MCP_KMS_KEYS: !GetAtt Key.Arn}}}"),
}
BEFORE = (
    "Globals:\n  Function:\n    Timeout: 28\n    MemorySize: 512\n    LoggingConfig: {LogFormat: JSON}\n"
    "    Environment: {Variables: {MCP_STACK: s, MCP_AUTH_MODE: s, MCP_STAGE: s}}\n"
)
EARLIER = {"content-type": "application/json", "mcp-protocol-version": "2025-11-25"}
NO_FORM = {"seat": {"action": "accept", "content": {"seat": 7}}}


def _tool(name: str) -> Any:  # noqa: ANN401 - a tool of any function
    @tool(name=name)
    def named(city: str = "") -> str:
        return city

    return named


CATALOG: Any = catalog.build_project({name: [_tool(name)] for name in APPS if name != "mcp"})


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    root, lines = tmp_path_factory.mktemp("project"), list[tuple[str, str]]()
    directory = write_project(root, APPS, PROPERTIES, BEFORE, "  Key: {Type: AWS::KMS::Key}\n")
    catalogs.write(directory, CATALOG)
    with Harness(
        directory, state_dir=root / "state", runtime=True, on_log=lambda folder, line: lines.append((folder, line))
    ) as running:
        yield Stack(running, directory, lines)


def call(stack: Stack, name: str, **params: object) -> dict[str, Any]:
    """Call a tool as a client of 2026-07-28."""
    sent = wire.message("tools/call", {"name": name, "arguments": {"city": "Lisbon"}, **params})
    return send(stack, sent, wire.headers(sent))


def call_earlier(stack: Stack, name: str, **arguments: object) -> dict[str, Any]:
    """Call a tool as a client of 2025."""
    params = {"name": name, "arguments": arguments or {"city": "Lisbon"}}
    sent = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return send(stack, sent, EARLIER)


def send(stack: Stack, sent: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
    """Send a request, and return the response when its lines are written."""
    before = _reports(stack.log("mcp"))
    answer = post(stack.harness.url, sent, headers)[1]
    wait_until(lambda: _reports(stack.log("mcp")) > before and _is_quiet(stack))
    return answer


def _reports(lines: list[str]) -> int:
    return sum('"type":"platform.report"' in line for line in lines)


def _is_quiet(stack: Stack) -> bool:
    lines = [line for _folder, line in list(stack.lines)]
    return _reports(lines) == sum('"type":"platform.start"' in line for line in lines)


def metrics_of(stack: Stack, request: Callable[[Stack], object]) -> set[str]:
    """Return the metrics that count a line of a request, but not those of cold starts."""
    before = len(stack.lines)
    request(stack)
    return filters.count_metrics(log_lines(stack, before)).keys() - {"ColdStarts"}


def log_lines(stack: Stack, before: int = 0) -> list[dict[str, Any]]:
    """Return the lines of functions and of Lambda, which are all JSON, without an author's own text."""
    return [json.loads(line) for line in written_lines(stack, before) if line.startswith("{")]


def written_lines(stack: Stack, before: int) -> list[str]:
    """Return the lines that `SystemLogLevel: WARN` lets through, as in the template; the stack waits for the others."""
    return [line for _folder, line in stack.lines[before:] if not SUCCESS.search(line)]


SUCCESS = re.compile(r'"type":"platform\.(start"|report".*"status":"success")')


@pytest.mark.parametrize("send", [call, call_earlier], ids=["2026", "2025"])
@pytest.mark.parametrize("name", ["lacks_a_module", "is_no_python"])
def test_a_function_that_cannot_start_is_counted_as_ended_and_failed(
    stack: Stack, send: Callable[..., dict[str, Any]], name: str
) -> None:
    assert send(stack, name)["error"]["code"] == -32603
    assert metrics_of(stack, lambda each: send(each, name)) == {"Ended", "Failed"}
    ended = [line for line in log_lines(stack) if line.get("type") == "platform.report"]
    assert all("outcome" not in line for line in ended), "no line of the toolkit can be one of these"


@pytest.mark.parametrize("send", [call, call_earlier], ids=["2026", "2025"])
@pytest.mark.parametrize("name", ["exits", "hangs"])
def test_a_function_that_exits_or_times_out_is_counted_as_ended_and_failed(
    stack: Stack, send: Callable[..., dict[str, Any]], name: str
) -> None:
    assert metrics_of(stack, lambda each: send(each, name)) == {"Ended", "Failed"}
    crashes = [line for line in log_lines(stack) if str(line.get("reason", "")).startswith("function_")]
    assert crashes[-1]["handler"] == name


ENDINGS = ["exits", "hangs", "lacks_a_module", "is_no_python"]


@pytest.mark.parametrize("name", ENDINGS)
def test_an_end_is_counted_at_every_door_that_the_endpoint_does_not_see(stack: Stack, name: str) -> None:
    """`/mcp/<folder>`, a function URL and an asynchronous order of a worker: nobody but Lambda writes a line."""
    doors: dict[str, Callable[[Stack], object]] = {
        "/mcp/<folder>": lambda each: direct(each, name),
        "function URL": lambda each: invoked(each, name, {"version": "2.0", "rawPath": "/", "body": "{}"}),
        "worker": lambda each: ordered(each, name),
    }
    assert [(door, metrics_of(stack, come)) for door, come in doors.items()] == [(door, {"Ended"}) for door in doors]


@pytest.mark.parametrize("event", [{}, {"Records": [{"eventSource": "aws:sqs"}]}])
def test_an_event_that_is_no_http_request_is_counted_and_written_without_frames(
    stack: Stack, event: dict[str, Any]
) -> None:
    before = len(stack.lines)
    assert metrics_of(stack, lambda each: invoked(each, "asks", event)) == {"Ended", "Failed", "Misconfigured"}
    lines = [line for line in log_lines(stack, before) if line.get("level") == "ERROR"]
    assert [line.get("errorType") for line in lines] == [None, "NotHttp"]
    assert [line.get("stackTrace") or [] for line in lines] == [[], []]


def direct(stack: Stack, name: str) -> None:
    sent = wire.message("tools/call", {"name": name, "arguments": {}})
    before = _reports(stack.log(name))
    with suppress(ValueError):  # API Gateway's answer to a function that ended
        post(f"{stack.harness.url}/{name}", sent, wire.headers(sent))
    wait_until(lambda: _reports(stack.log(name)) > before and _is_quiet(stack))


def ordered(stack: Stack, name: str) -> None:
    invoked(stack, name, {"mcpTask": "no order"}, how="Event")


def invoked(stack: Stack, name: str, event: dict[str, Any], **how: str) -> None:
    before = _reports(stack.log(name))
    stack.invoke(name, event, **how)
    wait_until(lambda: _reports(stack.log(name)) > before and _is_quiet(stack))


@pytest.mark.parametrize("name", ["is_slow", "starts_slowly"])
def test_a_function_for_which_the_endpoint_waits_in_vain_is_counted_as_ended(stack: Stack, name: str) -> None:
    """Lambda's lines tell of success, because the function answers in the end, warm or after its start."""
    metrics = metrics_of(stack, lambda each: call_late(each, name))
    assert metrics == {"Ended", "Failed"}
    assert [line["reason"] for line in log_lines(stack) if line.get("handler") == name] == ["invoke_deadline"]


def call_late(stack: Stack, name: str) -> None:
    """Call a tool by a request that API Gateway has held for 29 of its 30 seconds."""
    sent = wire.message("tools/call", {"name": name, "arguments": {"city": "Lisbon"}})
    before = _reports(stack.log(name))
    invoked(stack, "mcp", wire.event(sent, context={"timeEpoch": int((time.time() - 29) * 1000)}))
    wait_until(lambda: _reports(stack.log(name)) > before and _is_quiet(stack))


@pytest.mark.parametrize("send", [call, call_earlier], ids=["2026", "2025"])
def test_a_call_that_lambda_refuses_to_run_is_counted_as_busy_and_not_as_an_outage(
    stack: Stack, send: Callable[..., dict[str, Any]]
) -> None:
    assert metrics_of(stack, lambda each: send(each, "is_full")) == {"Busy", "Refused"}


@pytest.mark.parametrize(
    ("values", "counted"),
    [
        ({"status": "503", "integrationStatus": "429"}, {"Busy": 1}),
        ({"status": "504", "integrationStatus": "-"}, {"Ended": 1}),
        ({"status": "503", "integrationErrorMessage": "Execution timed out"}, {"Ended": 1}),
        ({"status": "500", "integrationStatus": "200", "integrationErrorMessage": "the function exited"}, {}),
        ({"status": "429", "integrationStatus": "-"}, {"Throttled": 1}),
        ({"status": "403", "authorizer.error": "timed out"}, {}),
        ({"status": "200", "integrationStatus": "200"}, {}),
    ],
)
def test_the_access_log_counts_what_the_functions_cannot_tell(
    values: dict[str, str], counted: dict[str, float]
) -> None:
    lines = [json.loads(filters.access_line(**values))]
    assert filters.count_metrics(lines, filters.ACCESS_LOGS) == counted


@pytest.mark.parametrize("send", [call, call_earlier], ids=["2026", "2025"])
def test_an_exception_of_a_tool_is_counted_as_one_crash(stack: Stack, send: Callable[..., dict[str, Any]]) -> None:
    before = len(stack.lines)
    send(stack, "raises")
    assert filters.count_metrics(log_lines(stack, before))["Crashed"] == 1


def test_an_error_of_a_function_is_not_counted_as_refused_for_a_client_of_2025(stack: Stack) -> None:
    assert metrics_of(stack, lambda each: call_earlier(each, "fails")) == {"Failed"}


def _without_a_state(stack: Stack) -> object:
    return call(stack, "asks", inputResponses=NO_FORM)


def _with_a_wrong_answer(stack: Stack) -> object:
    asked = call(stack, "asks")["result"]
    return call(stack, "asks", requestState=asked["requestState"], inputResponses=NO_FORM)


def _with_a_forged_state(stack: Stack) -> object:
    state = call(stack, "asks")["result"]["requestState"]
    return [call(stack, "asks", requestState=f"{state[:60]}{each}{state[64:]}") for each in ("AAAA", "BBBB") * 3]


ANSWERED: dict[str, Callable[[Stack], object]] = {
    "a question": lambda stack: call(stack, "asks"),
    "an answer without a state": _without_a_state,
    "a tool's own name for a crash": lambda stack: call(stack, "asks", arguments={"city": "function_error"}),
    "a wrong argument": lambda stack: call(stack, "asks", arguments={"city": 7}),
    "an answer that does not fit": _with_a_wrong_answer,
}
REFUSED: dict[str, Callable[[Stack], object]] = {
    "a call that must wait, of 2025": lambda stack: call_earlier(stack, "is_busy"),
    "an unknown tool": lambda stack: call(stack, "nothing"),
    "an unknown tool of 2025": lambda stack: call_earlier(stack, "nothing"),
    "a question that a client of 2025 cannot show": lambda stack: call_earlier(stack, "asks"),
    "forged states": _with_a_forged_state,
    "a text as state": lambda stack: call(stack, "asks", requestState="Runtime.ExitError function_error kms:x"),
    "a name like a reason": lambda stack: call(stack, "function_error"),
    "no method": lambda stack: send(stack, {"jsonrpc": "2.0", "id": 1}, EARLIER),
    "an unknown revision": lambda stack: send(
        stack, wire.message("tools/list"), {**EARLIER, "mcp-protocol-version": "1999-01-01"}
    ),
}


@pytest.mark.parametrize("request_", ANSWERED.values(), ids=ANSWERED)
def test_a_successful_request_is_counted_by_no_error_metric(stack: Stack, request_: Callable[[Stack], object]) -> None:
    assert metrics_of(stack, request_) == set()


@pytest.mark.parametrize("request_", REFUSED.values(), ids=REFUSED)
def test_a_refused_request_is_counted_only_as_refused(stack: Stack, request_: Callable[[Stack], object]) -> None:
    assert metrics_of(stack, request_) == {"Refused"}


def _answer(stack: Stack) -> object:
    state = call(stack, "asks")["result"]["requestState"]
    return call(stack, "asks", requestState=state, inputResponses={"seat": {"action": "accept", "content": SEAT}})


SEAT = {"seat": "7A"}
KINDS: dict[str, Callable[[Stack], object]] = {
    "`tools/call` that asks": lambda stack: call(stack, "asks"),
    "`tools/call` with an answer": _answer,
    "`tools/call` of an unknown tool": lambda stack: call(stack, "nothing"),
    "`tools/list`": lambda stack: send(stack, wire.message("tools/list"), wire.headers(wire.message("tools/list"))),
    "`tools/call` of 2025, two lines": lambda stack: call_earlier(stack, "asks"),
}


def test_the_costs_count_the_bytes_of_real_lines(stack: Stack) -> None:
    """CloudWatch bills the UTF-8 bytes of each line, and 26 more."""
    sizes = {}
    for kind, request in KINDS.items():
        request(stack)  # a cold start has one more line
        before = len(stack.lines)
        request(stack)
        lines = [len(line.encode()) + cost.EVENT_BYTES for line in written_lines(stack, before)]
        sizes[kind] = lines[-1] if kind == "`tools/call` with an answer" else sum(lines)
    assert sizes == pytest.approx(cost.LOG_BYTES, rel=0.05)
