"""Conversations continue although processes of the runtime are killed between two rounds or in one."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
import pytest

from mcp_functions_harness import Harness, catalog
from tests.clients.people import Person, accept, text
from tests.support import wire

from .conftest import Answer, process_exists, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp.client.session import ClientRequestContext
    from mcp_types import ElicitRequestParams, ElicitResult

ROOT = Path(__file__).parents[3]
RESOLVE = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
ENDED = {"code": -32603, "message": "The function ended before it answered; whether it acted is unknown"}
DUPLICATE = "Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created."
# Asks, then says who it is and stays until it is killed, or until the file that it looks for is there.
ASKS_THEN_STAYS = """
import os, pathlib, time
from pydantic import BaseModel
from mcp_functions import Elicit, serve, tool

class Who(BaseModel):
    name: str

@tool
def stays(where: str, *, elicit: Elicit) -> str:
    name = elicit("who", "Who is there?", Who).name
    here = pathlib.Path(where)
    if not (here / "go").exists():
        (here / "written").write_text(str(os.getpid()))
        (here / "written").rename(here / "pid")
        time.sleep(60)
    return name

handler = serve(stays)
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the front door and one sample to where there is no template, and add a tool that stays."""
    functions = tmp_path_factory.mktemp("project") / "functions"
    for folder in ("mcp", "update_work_item"):
        shutil.copytree(ROOT / "functions" / folder, functions / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (functions / "stays").mkdir()
    (functions / "stays" / "app.py").write_text(ASKS_THEN_STAYS, encoding="utf-8")
    catalog.write(functions, catalog.generate(functions))
    return functions


@pytest.fixture(scope="module")
def harness(directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    with Harness(directory, state_dir=tmp_path_factory.mktemp("state"), runtime=True) as running:
        yield running


class ProcessKiller(Person):
    """Kills every process that has answered so far, each time before answering."""

    def __init__(self, harness: Harness, *answers: ElicitResult) -> None:
        super().__init__(*answers)
        self._harness = harness

    async def answer(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        for pid in {invocation.pid for invocation in self._harness.invocations if invocation.pid}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            # a request that meets a process in its last moment gets an honest error
            await anyio.to_thread.run_sync(wait_until, lambda pid=pid: not process_exists(pid))
        return await super().answer(context, params)


@pytest.mark.parametrize("where", ["", "/update_work_item"], ids=["the front door", "its own endpoint"])
def test_a_conversation_continues_after_every_process_was_killed_between_two_rounds(
    harness: Harness, where: str
) -> None:
    before = len(harness.invocations)
    person = ProcessKiller(harness, accept(resolution="Duplicate"), accept(duplicateOfId=4301))
    result = person.call_tool(harness.url + where, "update_work_item", RESOLVE)
    assert (text(result), result.is_error) == (DUPLICATE, False)
    asked = harness.invocations[before:]
    assert len({one.pid for one in asked if one.folder == "update_work_item"}) == 3
    assert {one.error for one in asked} == {None}


def post(url: str, message: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    address = urlsplit(url)
    connection = HTTPConnection(address.netloc, timeout=60)
    headers = {
        "content-type": "application/json",
        "mcp-protocol-version": wire.VERSION,
        "mcp-method": message["method"],
        "mcp-name": message["params"]["name"],
    }
    with contextlib.closing(connection):
        connection.request("POST", address.path, json.dumps(message), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def test_a_round_with_a_killed_process_is_an_error_and_may_be_repeated(harness: Harness, tmp_path: Path) -> None:
    params: dict[str, Any] = {"name": "stays", "arguments": {"where": str(tmp_path)}}
    first = wire.message("tools/call", params, id=1)
    _, asked = post(harness.url, first)
    answers = {"who": {"action": "accept", "content": {"name": "Ada"}}}
    carried = {"requestState": asked["result"]["requestState"], "inputResponses": answers}
    second = wire.message("tools/call", params | carried, id=2)

    killed = Answer(lambda: post(harness.url, second))
    wait_until((tmp_path / "pid").exists)
    os.kill(int((tmp_path / "pid").read_text(encoding="utf-8")), signal.SIGKILL)
    status, told = killed.get()
    assert (status, told["id"], told["error"]) == (200, 2, ENDED)

    (tmp_path / "go").touch()
    status, told = post(harness.url, second)
    assert (status, told["result"]["content"][0]["text"]) == (200, "Ada")


def test_a_conversation_that_began_without_the_runtime_completes_with_it(directory: Path, tmp_path: Path) -> None:
    params: dict[str, Any] = {"name": "stays", "arguments": {"where": str(tmp_path)}}
    (tmp_path / "go").touch()
    with Harness(directory, state_dir=tmp_path / "state") as running:
        _, asked = post(running.url, wire.message("tools/call", params))
    answers = {"who": {"action": "accept", "content": {"name": "Ada"}}}
    carried = {"requestState": asked["result"]["requestState"], "inputResponses": answers}
    with Harness(directory, state_dir=tmp_path / "state", runtime=True) as running:
        _, told = post(running.url, wire.message("tools/call", params | carried))
    assert told["result"]["content"][0]["text"] == "Ada"


def test_the_demo_runs_each_round_in_a_new_process() -> None:
    command = [sys.executable, "-m", "mcp_functions_harness", "demo", "--runtime"]
    ran = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)  # noqa: S603
    assert (ran.returncode, ran.stderr) == (0, "")
    assert len(set(re.findall(r"local_update_work_item ran [\d.]+ ms as pid (\d+) and ended", ran.stdout))) == 3
    assert ran.stdout.endswith("3 rounds, 3 processes, and nothing kept on the server between them.\n")
    assert max(map(len, ran.stdout.splitlines())) <= 120
