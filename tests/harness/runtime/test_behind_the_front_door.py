"""The real front door, in a process of the real runtime, before functions that fail as functions do on Lambda."""

# No `from __future__ import annotations` here: the tools below are read as an author writes them.
import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from mcp_functions import Step, tool
from mcp_functions.handlers import catalog
from mcp_functions_harness import Harness
from mcp_functions_harness import catalog as catalogs
from tests.support import wire

from .conftest import Answer, Stack, wait_until, write_project

CLIENTS = 30
SECRET = "hunter2"  # noqa: S105 - what must not come through
FRONT = """
from pathlib import Path
from mcp_functions import serve_catalog
handler = serve_catalog(Path(__file__).with_name("catalog.json"))
"""
WORKS = """
from mcp_functions import Step, serve, tool

@tool
def works(*, step: Step) -> str:
    for number in range(3):
        step.within(20)(f"part-{number}", lambda: number)
    return "done"

handler = serve(works)
"""
ECHO = """
import json
def handler(event, context):
    message = json.loads(event["body"])
    told = json.dumps({"epoch": event["requestContext"]["timeEpoch"], "left": context.get_remaining_time_in_millis()})
    meta = {"io.modelcontextprotocol/serverInfo": {"name": "x", "version": "0"}}
    result = {"resultType": "complete", "content": [{"type": "text", "text": told}], "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": body}
"""
APPS = {
    "mcp": FRONT,
    "works": WORKS,
    "echo": ECHO,
    "hangs": "import time\ndef handler(event, context):\n    time.sleep(60)\n",
    "exits": "import os\ndef handler(event, context):\n    os._exit(1)\n",
    "eats": "def handler(event, context):\n    return len(bytearray(400 * 1024 * 1024))\n",
    "raises": f"def handler(event, context):\n    raise ValueError('{SECRET}')\n",
    "lacks_a_module": f"import {SECRET}\n",
    "returns_garbage": f"def handler(event, context):\n    return '{SECRET}'\n",
    "returns_bytes": f"def handler(event, context):\n    return b'{SECRET}'\n",
    "returns_too_much": "def handler(event, context):\n    return 'a' * (7 * 1024 * 1024)\n",
    "is_one": (
        "import os, pathlib, json, time\n"
        "def handler(event, context):\n"
        "    here = pathlib.Path(json.loads(event['body'])['params']['arguments']['where'])\n"
        "    (here / 'written').write_text(str(os.getpid()))\n"
        "    (here / 'written').rename(here / 'pid')\n"
        "    time.sleep(60)\n"
    ),
}
PROPERTIES = {
    "hangs": "{Timeout: 1}",
    "eats": "{MemorySize: 128}",
    "is_one": "{ReservedConcurrentExecutions: 1}",
}
INTERNAL = {"code": -32603, "message": "Internal error"}
ENDED = {"code": -32603, "message": "The function ended before it answered; whether it acted is unknown"}


def _tool(name: str) -> Any:  # noqa: ANN401 - a tool of any function
    @tool(name=name)
    def named(where: str = "") -> str:
        return where

    return named


@tool
def works(*, step: Step) -> str:
    return str(step)


OTHERS = {name: [_tool(name)] for name in [*APPS, "missing"] if name not in {"mcp", "works"}}
CATALOG: Any = catalog.build_project({**OTHERS, "works": [works]})


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    root, lines = tmp_path_factory.mktemp("project"), list[tuple[str, str]]()
    before = (
        "Globals:\n  Function:\n    Timeout: 28\n    MemorySize: 512\n"
        "    Environment: {Variables: {MCP_STACK: s, MCP_AUTH_MODE: s, MCP_STAGE: s}}\n"
    )
    properties = PROPERTIES | {"works": "{Environment: {Variables: {MCP_KMS_KEYS: !GetAtt Key.Arn}}}"}
    directory = write_project(root, APPS, properties, before, "  Key: {Type: AWS::KMS::Key}\n")
    catalogs.write(directory, CATALOG)
    with Harness(
        directory, state_dir=root / "state", runtime=True, on_log=lambda folder, line: lines.append((folder, line))
    ) as running:
        yield Stack(running, directory, lines)


def call(url: str, name: str, **arguments: str) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Call a tool, and return status, message and headers."""
    sent = wire.message("tools/call", {"name": name, "arguments": arguments}, id=f"id of {name}")
    return post(url, sent, wire.headers(sent))


def post(url: str, sent: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, Any], dict[str, str]]:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
    with contextlib.closing(connection):
        connection.request("POST", urlsplit(url).path, json.dumps(sent), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read()), {name.lower(): value for name, value in answer.getheaders()}


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        ("hangs", 200, {"code": -32603, "message": "The function did not answer in time"}),
        ("exits", 200, ENDED),
        ("eats", 200, ENDED),
        ("raises", 200, INTERNAL),
        ("lacks_a_module", 200, INTERNAL),
        ("missing", 500, INTERNAL),
        ("returns_garbage", 200, INTERNAL),
        ("returns_bytes", 200, INTERNAL),
        (
            "returns_too_much",
            200,
            {"code": -32603, "message": "The result is larger than this server can send (6 MB)"},
        ),
    ],
)
def test_a_failing_function_is_an_error_of_its_request(
    stack: Stack, name: str, status: int, said: dict[str, Any]
) -> None:
    before = len(stack.harness.invocations)
    answered, message, headers = call(stack.harness.url, name)
    assert (answered, message) == (status, {"jsonrpc": "2.0", "id": f"id of {name}", "error": said})
    assert "retry-after" not in headers  # it may have run
    asked = [invocation.folder for invocation in stack.harness.invocations[before:]]
    assert asked == (["mcp"] if name == "missing" else [name, "mcp"])  # once


def test_a_call_of_a_throttled_function_may_be_repeated(stack: Stack, tmp_path: Path) -> None:
    running = Answer(lambda: call(stack.harness.url, "is_one", where=str(tmp_path)))
    pid = start_call(tmp_path)
    status, message, headers = call(stack.harness.url, "is_one", where=str(tmp_path))
    assert (status, message["id"], message["error"]["data"]) == (503, "id of is_one", {"retryable": True})
    assert int(headers["retry-after"]) > 0
    os.kill(pid, signal.SIGKILL)
    assert running.get()[1]["error"] == ENDED


def start_call(where: Path) -> int:
    """Wait until the function runs that writes its process's id there."""
    wait_until((where / "pid").exists)
    return int((where / "pid").read_text(encoding="utf-8"))


def test_a_function_killed_during_a_call_is_the_same_error_for_2025_clients(stack: Stack, tmp_path: Path) -> None:
    params = {"name": "is_one", "arguments": {"where": str(tmp_path)}}
    sent = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"content-type": "application/json", "mcp-protocol-version": "2025-11-25"}
    running = Answer(lambda: post(stack.harness.url, sent, headers))
    os.kill(start_call(tmp_path), signal.SIGKILL)
    assert running.get()[:2] == (200, {"jsonrpc": "2.0", "id": 1, "error": ENDED})


def test_only_a_functions_own_log_shows_its_output(stack: Stack) -> None:
    for name in ("raises", "lacks_a_module", "returns_garbage"):
        assert SECRET not in json.dumps(call(stack.harness.url, name)[1])
    assert SECRET not in "\n".join(stack.log("mcp"))
    assert SECRET in "\n".join(stack.log("raises"))


def events_of_function(stack: Stack, name: str, age_ms: int) -> tuple[int, dict[str, Any]]:
    """Invoke the front door with a request of some age, and return its moment and the result."""
    epoch = int(time.time() * 1000) - age_ms
    params = {"name": name, "arguments": {}}
    event = wire.event(wire.message("tools/call", params, capabilities={}), context={"timeEpoch": epoch})
    return epoch, json.loads(stack.value("mcp", event)["body"])["result"]


def test_the_front_door_passes_on_the_time_of_the_request_unchanged(stack: Stack) -> None:
    epoch, result = events_of_function(stack, "echo", 5000)
    document = json.loads(result["content"][0]["text"])
    assert document["epoch"] == epoch
    assert document["left"] > 25_000  # Lambda's own count is from the function's start: it alone would promise too much


def test_the_deadline_is_computed_from_the_time_of_the_request(stack: Stack) -> None:
    # each part says that it takes 20 seconds; the function may run for 28, the gateway waits for 30
    assert events_of_function(stack, "works", 0)[1]["resultType"] == "complete"
    _, shed = events_of_function(stack, "works", 15_000)
    assert (shed["resultType"], shed["inputRequests"]) == ("input_required", {})


def test_a_few_processes_serve_many_concurrent_clients(stack: Stack) -> None:
    before = len(stack.harness.invocations)
    answers = [Answer(lambda: [call(stack.harness.url, "echo")[0] for _ in range(2)]) for _ in range(CLIENTS)]
    assert [answer.get() for answer in answers] == [[200, 200]] * CLIENTS
    ran = stack.harness.invocations[before:]
    assert len(ran) == CLIENTS * 2 * 2  # the front door, and the function behind it
    assert {invocation.error for invocation in ran} == {None}
    assert len({invocation.pid for invocation in ran}) < CLIENTS
