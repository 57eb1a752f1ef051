"""The harness over HTTP: routes, events, Invoke, error responses, environment variables, and a clean stop."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions.seal.keyring import FAILED_UNWRAP_COST, FULL_BUDGET
from mcp_functions_harness import Harness, Invocation, Problem
from tests.support import wire

from .conftest import write_functions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from http.client import HTTPConnection

INSPECTOR = "http://localhost:6274,http://127.0.0.1:6274"
SAMPLE_FUNCTIONS = Path(__file__).parents[2] / "functions"
ECHO = """
import json
def handler(event, context):
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": json.dumps(event)}
"""
CONTEXT = """
def handler(event, context):
    names = ("function_name", "aws_request_id", "invoked_function_arn", "log_group_name", "log_stream_name",
             "function_version", "memory_limit_in_mb", "identity", "client_context")
    return {name: getattr(context, name) for name in names} | {"left": context.get_remaining_time_in_millis()}
"""
QUOTED = "what the user said"
RAISES = f"""
def handler(event, context):
    raise ValueError("{QUOTED}")
"""
DIVIDES = f"""
from mcp_functions import serve, tool

@tool
def divides() -> str:
    raise ValueError("{QUOTED}")

handler = serve(divides)
"""
FRONT = """
import json, os
import boto3
def handler(event, context):
    client = boto3.client("lambda")
    try:
        name = os.environ["MCP_STACK"] + "_" + json.loads(event["body"])["call"]
        return json.loads(client.invoke(FunctionName=name, Payload=json.dumps(event).encode())["Payload"].read())
    finally:
        client.close()
"""
FUNCTIONS = {
    "mcp/app.py": FRONT,
    "echo/app.py": ECHO,
    "tells/app.py": CONTEXT,
    "raises/app.py": RAISES,
    "divides/app.py": DIVIDES,
    "exits/app.py": "def handler(event, context):\n    raise SystemExit\n",
    "sets/app.py": "def handler(event, context):\n    return {1, 2}\n",
    "not_a_number/app.py": "def handler(event, context):\n    return float('nan')\n",
    "big/app.py": "def handler(event, context):\n    return 'a' * (6 * 1024 * 1024)\n",
}


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    root = tmp_path_factory.mktemp("project")
    with Harness(write_functions(root / "functions", FUNCTIONS), state_dir=root / "state") as running:
        yield running


@pytest.fixture
def ask(harness: Harness, connect: Callable[[str], HTTPConnection]) -> Callable[..., tuple[int, Any]]:
    def send(path: str, body: bytes | None = None, **headers: str) -> tuple[int, Any]:
        connection = connect(harness.url)
        connection.request("POST", path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    return send


def test_each_function_has_its_own_route(ask: Callable[..., tuple[int, Any]]) -> None:
    status, event = ask("/mcp/echo?x=1", b"{}", content_type="application/json")
    assert status == 200
    assert (event["routeKey"], event["rawPath"], event["rawQueryString"]) == ("ANY /mcp/echo", "/mcp/echo", "x=1")
    assert (event["body"], event["requestContext"]["http"]["method"]) == ("{}", "POST")


def test_the_time_of_an_event_is_the_current_time_in_milliseconds(ask: Callable[..., tuple[int, Any]]) -> None:
    one, two = ask("/mcp/echo")[1]["requestContext"], ask("/mcp/echo")[1]["requestContext"]
    assert 1_700_000_000_000 < one["timeEpoch"] <= two["timeEpoch"]
    assert one["requestId"] != two["requestId"]


@pytest.mark.parametrize("path", ["/", "/mcp/", "/mcp/nobody", "/mcp/echo/", "/mcp/echo/deeper", "/mcpx", "/MCP"])
def test_other_routes_are_not_found(ask: Callable[..., tuple[int, Any]], path: str) -> None:
    assert ask(path) == (404, {"message": "Not Found"})


def test_the_front_door_reaches_other_functions_through_lambda(
    harness: Harness, ask: Callable[..., tuple[int, Any]]
) -> None:
    status, event = ask("/mcp", b'{"call": "echo"}', content_type="application/json")
    assert (status, event["routeKey"]) == (200, "ANY /mcp")
    inner, outer = harness.invocations[-2:]
    assert [inner.folder, outer.folder] == ["echo", "mcp"]
    assert inner.request_id != outer.request_id
    assert inner.http_request_id == outer.http_request_id


def test_the_context_object_has_the_members_of_lambda(ask: Callable[..., tuple[int, Any]], harness: Harness) -> None:
    told = ask("/mcp/tells")[1]
    assert told["function_name"] == "local_tells"
    assert told["invoked_function_arn"] == "arn:aws:lambda:us-east-1:123456789012:function:local_tells"
    assert told["log_group_name"] == "/aws/lambda/local_tells"
    assert told["aws_request_id"] == harness.invocations[-1].request_id
    assert (told["function_version"], told["memory_limit_in_mb"]) == ("$LATEST", "512")
    assert 0 < told["left"] <= 29000


@pytest.mark.parametrize(
    ("folder", "error"),
    [
        ("raises", "ValueError"),
        ("exits", "Runtime.ExitError"),
        ("sets", "Runtime.MarshalError"),
        ("not_a_number", "Runtime.MarshalError"),
        ("big", "Function.ResponseSizeTooLarge"),
    ],
)
def test_a_function_that_fails_is_an_internal_server_error(
    ask: Callable[..., tuple[int, Any]], harness: Harness, folder: str, error: str
) -> None:
    assert ask(f"/mcp/{folder}") == (500, {"message": "Internal Server Error"})
    assert harness.invocations[-1].error == error


def test_a_failure_shows_its_text_and_the_authors_frames(
    ask: Callable[..., tuple[int, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    ask("/mcp/raises")
    error_output = capsys.readouterr().err
    assert error_output.startswith("raises raised\nTraceback (most recent call last):\n")
    assert error_output.endswith(f"ValueError: {QUOTED}\n")
    assert re.findall(r'File ".*/(.*)", line (\d+), in (\w+)', error_output) == [("app.py", "3", "handler")]


def test_only_the_author_sees_the_exception_of_a_tool(
    ask: Callable[..., tuple[int, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    message = wire.message("tools/call", {"name": "divides", "arguments": {}})
    status, answer = ask("/mcp/divides", json.dumps(message).encode(), **wire.headers(message))
    error_output = capsys.readouterr().err
    assert (status, answer["result"]["isError"], QUOTED in str(answer)) == (200, True, False)
    assert f"ValueError: {QUOTED}\n" in error_output
    assert re.findall(r'File ".*/(.*)", line (\d+), in (\w+)', error_output) == [("app.py", "6", "divides")]


def test_a_body_over_lambdas_limit_is_too_large(ask: Callable[..., tuple[int, Any]]) -> None:
    assert ask("/mcp/echo", b"a" * (7 * 1024 * 1024)) == (413, {"message": "Request Entity Too Large"})


def test_a_body_over_the_gateways_limit_is_too_large(ask: Callable[..., tuple[int, Any]]) -> None:
    assert ask("/mcp/echo", b"a" * (10 * 1024 * 1024 + 1)) == (413, {"message": "Request Entity Too Large"})


def test_the_harness_runs_requests_concurrently(tmp_path: Path, connect: Callable[[str], HTTPConnection]) -> None:
    app = "import threading\nmeet = threading.Barrier(2, timeout=60)\nhandler = lambda *_: meet.wait() >= 0\n"
    with Harness(write_functions(tmp_path / "functions", {"meets/app.py": app}), state_dir=tmp_path / "s") as running:
        both = [connect(running.url), connect(running.url)]
        for connection in both:
            connection.request("POST", "/mcp/meets")
        assert [connection.getresponse().read() for connection in both] == [b"true", b"true"]


def test_the_harness_restores_the_environment_variables_when_it_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "real")
    monkeypatch.setenv("no_proxy", "intra.example")
    monkeypatch.delenv("MCP_STACK", raising=False)
    monkeypatch.delenv("MCP_ALLOWED_ORIGINS")  # of these tests' own deployment
    before = dict(os.environ)
    app = "import os\nSEEN = dict(os.environ)\ndef handler(event, context): return SEEN\n"
    directory = write_functions(tmp_path / "functions", {"a/app.py": app})
    with Harness(directory, state_dir=tmp_path / "s") as running:
        seen = running.functions["a"].handler({}, None)
    port = running.url.rpartition(":")[2].partition("/")[0]
    assert {name: value for name, value in seen.items() if name.startswith("MCP_")} == {
        "MCP_STACK": "local",
        "MCP_STAGE": "local",
        "MCP_AUTH_MODE": "none",
        "MCP_KMS_KEYS": seen["MCP_KMS_KEYS"],
        "MCP_TABLE": "local-table",
        "MCP_TASK_LEASE_SECONDS": "3",
        "MCP_SERVER_NAME": tmp_path.name,
        "MCP_SERVER_VERSION": "local",
        "MCP_ALLOWED_ORIGINS": f"http://localhost:{port},http://127.0.0.1:{port},{INSPECTOR}",
    }
    assert seen["MCP_KMS_KEYS"].startswith("arn:aws:kms:us-east-1:123456789012:key/")
    assert "AWS_PROFILE" not in seen
    assert (seen["AWS_SECRET_ACCESS_KEY"], seen["AWS_REGION"], seen["AWS_EC2_METADATA_DISABLED"]) == (
        "local",
        "us-east-1",
        "true",
    )
    assert seen["no_proxy"] == "intra.example,127.0.0.1,localhost,::1"
    assert dict(os.environ) == before


def test_no_thread_and_no_port_remain_after_the_harness_stopped(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with Harness(write_functions(tmp_path / "functions", {"a/app.py": CONTEXT}), state_dir=tmp_path / "s") as running:
        port = int(running.url.rpartition(":")[2].partition("/")[0])
    assert set(threading.enumerate()) <= before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_a_harness_that_runs_again_loads_its_functions_again(tmp_path: Path) -> None:
    harness = Harness(write_functions(tmp_path / "functions", {"a/app.py": CONTEXT}), state_dir=tmp_path / "s")
    with harness:
        first = harness.functions["a"]
    with harness:
        assert harness.functions["a"] is not first


def test_a_failed_start_of_the_harness_leaves_no_thread_and_no_variable(tmp_path: Path) -> None:
    threads, environment = set(threading.enumerate()), dict(os.environ)
    directory = write_functions(tmp_path / "functions", {"a/app.py": "raise ValueError\n"})
    with pytest.raises(Problem, match="does not load"), Harness(directory, state_dir=tmp_path / "s"):
        pass
    assert (set(threading.enumerate()) - threads, dict(os.environ)) == (set(), environment)


def test_an_observer_is_called_for_every_invocation(tmp_path: Path, connect: Callable[[str], HTTPConnection]) -> None:
    told: list[Invocation] = []
    directory = write_functions(tmp_path / "functions", {"a/app.py": CONTEXT})
    with Harness(directory, state_dir=tmp_path / "s", on_invocation=told.append) as running:
        connection = connect(running.url)
        connection.request("GET", "/mcp/a")
        connection.getresponse().read()
        assert told == running.invocations
    assert [invocation.folder for invocation in told] == ["a"]


def test_concurrent_first_requests_of_2025_clients_share_one_data_key(
    tmp_path: Path, connect: Callable[[str], HTTPConnection]
) -> None:
    """Call more functions than a caller may spend failed KMS calls. With separate keys, some would have to wait."""
    begin = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    told: list[object] = []
    with Harness(SAMPLE_FUNCTIONS, state_dir=tmp_path / "s") as running:
        at_once = threading.Barrier(2 * FULL_BUDGET // FAILED_UNWRAP_COST + 2)

        def hold(connection: HTTPConnection) -> None:
            def ask(method: str, params: dict[str, Any], **session: str) -> Any:  # noqa: ANN401 - JSON
                headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
                at_once.wait()
                message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                connection.request("POST", "/mcp", json.dumps(message), {**headers, **session})
                return connection.getresponse()

            begun = ask("initialize", begin)
            begun.read()
            session = {"mcp-session-id": begun.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
            answer = ask("tools/call", {"name": "add", "arguments": {"a": 40, "b": 2}}, **session)
            told.append(json.loads(answer.read()).get("result", {}).get("content"))

        clients = [threading.Thread(target=hold, args=(connect(running.url),)) for _ in range(at_once.parties)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
    assert told == [[{"type": "text", "text": "42"}]] * at_once.parties
