"""An operator may delete the folder of an optional feature from the layer.

A request then gets the specification's answer.

Each conversation runs in an interpreter of its own, with a copy of the toolkit. One copy lacks all such folders; in
each other copy, one is missing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions import Elicit, tool
from mcp_functions.handlers import catalog
from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKAGE = Path(catalog.__file__).parents[1]
ROOMS = ["legacy", "apps", "tasks", "dialects", "oauth"]
PROGRAM = """
import json, sys
from tests.support import wire
from mcp_functions import Elicit, serve, serve_catalog, tool

@tool
def add(a: int) -> int:
    return a + 1

@tool
def book(*, elicit: Elicit) -> str:
    return elicit("name", "Who?", str)

@tool(task="allowed")
def work(*, elicit: Elicit) -> str:
    return elicit("name", "Who?", str)

assert __import__("mcp_functions").__file__.startswith(sys.argv[1])
HANDLERS = {"add": [add], "book": [add, book], "work": [work]}
for kind, event in json.load(sys.stdin):
    if kind == "door":
        function = serve_catalog("catalog.json")
    else:
        function = serve(*HANDLERS[kind], codec=wire.PlainCodec())
    response = function(event, wire.Context("shop_mcp" if kind == "door" else f"shop_{kind}"))
    print(json.dumps(response))
"""
VARIABLES = {
    "MCP_STACK": "shop",
    "MCP_AUTH_MODE": "none",
    "MCP_TABLE": "table",
    "MCP_DIALECTS": "sep-1685",
    "AWS_REGION": "eu-west-1",
    "PYTHONDONTWRITEBYTECODE": "1",
}
NO_ELICITATION: dict[str, Any] = {}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}
OF_2025 = wire.event(INITIALIZE, headers={"mcp-protocol-version": None, "mcp-method": None})
WITHOUT_VERSION = wire.event(wire.message("tools/list"), headers={"mcp-protocol-version": None})
BOOK = {"name": "book", "arguments": {}}
WORK = {"name": "work", "arguments": {}}
FORM = {"uri": "ui://mcp-functions/ask"}
SAYS_DIALECT: dict[str, Any] = {"elicitation": {}, "experimental": {"sep-1685": {}}}


def event(method: str, params: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:  # noqa: ANN401
    return wire.event(wire.message(method, params, **options))


# room -> the events of its conversation: the function, the event, and the status and the code or a text of the response
CONVERSATIONS: dict[str, list[tuple[str, dict[str, Any], int, Any]]] = {
    "legacy": [
        ("add", OF_2025, 400, -32022),
        ("add", WITHOUT_VERSION, 400, -32020),
        ("door", OF_2025, 400, -32022),
        ("door", event("tools/list"), 200, '"tools":['),
    ],
    "apps": [
        ("book", event("tools/list", capabilities=NO_ELICITATION), 200, '"name":"book"'),
        ("book", event("tools/call", BOOK, capabilities=NO_ELICITATION), 200, "Not finished"),
        ("book", event("tools/call", BOOK), 200, '"inputRequests":{"name"'),
        ("book", event("tools/call", {"name": "book-answer", "arguments": {}}), 200, -32602),
        ("book", event("resources/read", FORM), 404, -32601),
        ("door", event("tools/list", capabilities=NO_ELICITATION), 200, '"name":"book"'),
        ("door", event("server/discover"), 200, '"capabilities"'),
    ],
    "tasks": [
        ("work", event("tools/call", WORK, capabilities=wire.TASK_CAPABILITIES), 200, '"inputRequests":{"name"'),
        ("work", event("tasks/get", {"taskId": "work.1"}, capabilities=wire.TASK_CAPABILITIES), 404, -32601),
        ("door", event("tasks/get", {"taskId": "work.1"}, capabilities=wire.TASK_CAPABILITIES), 404, -32601),
        ("door", event("tools/list"), 200, '"name":"work"'),
    ],
    "dialects": [
        ("book", event("tools/call", BOOK, capabilities=SAYS_DIALECT), 200, '"inputRequests":{"name"'),
        ("door", event("server/discover"), 200, '"capabilities"'),
        ("book", wire.event('{"jsonrpc":"2.0","id":"book.x","result":{}}'), 400, -32600),
    ],
    "oauth": [
        ("add", event("tools/call", {"name": "add", "arguments": {"a": 1}}), 200, '"structuredContent":2'),
        ("door", event("tools/list"), 200, '"tools":['),
    ],
}


@pytest.fixture(scope="module")
def catalog_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the catalog of the functions, with the whole toolkit."""

    def ask(*, elicit: Elicit) -> str:
        return elicit("name", "Who?", str)

    handlers = {"book": [tool(name="book")(ask)], "work": [tool(name="work", task="allowed")(ask)]}
    path = tmp_path_factory.mktemp("catalog") / "catalog.json"
    path.write_text(json.dumps(catalog.build_project(handlers)))
    return path


def answers(
    directory: Path, without: list[str], catalog_path: Path, events: list[tuple[str, Any]]
) -> list[dict[str, Any]]:
    """Answer events with a copy of the toolkit that lacks some folders."""
    skip = shutil.ignore_patterns(*without)
    shutil.copytree(PACKAGE, directory / "mcp_functions", ignore=skip)
    shutil.copy(catalog_path, directory)
    found = subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, "-c", PROGRAM, str(directory)],
        cwd=directory,
        env={**VARIABLES, "PATH": os.environ["PATH"], "PYTHONPATH": f"{directory}:{Path.cwd()}"},
        input=json.dumps(events),
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return [json.loads(line) for line in found.stdout.splitlines() if line.startswith('{"statusCode"')]


@pytest.mark.parametrize("without", [ROOMS, *([room] for room in ROOMS)], ids="+".join)
def test_without_a_room_a_request_gets_the_answer_of_the_specification(
    without: list[str], catalog_file: Path, tmp_path: Path
) -> None:
    rows = [row for room in without for row in CONVERSATIONS[room]]
    responses = answers(tmp_path, without, catalog_file, [row[:2] for row in rows])
    assert len(responses) == len(rows)
    for (_kind, sent, status, expected), response in zip(rows, responses, strict=True):
        code = json.loads(response["body"]).get("error", {}).get("code")
        assert (response["statusCode"], code if isinstance(expected, int) else None) == (
            status,
            expected if isinstance(expected, int) else None,
        ), (sent["body"], response["body"])
        assert isinstance(expected, int) or expected in response["body"], (sent["body"], response["body"])
