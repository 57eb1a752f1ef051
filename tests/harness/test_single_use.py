"""Single use in the harness: all functions share one table, also when a worker is killed."""

from __future__ import annotations

import json
import time
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from mcp_functions_harness import Harness
from tests.harness.conftest import write_functions
from tests.support import modes, wire

if TYPE_CHECKING:
    from pathlib import Path

PAY = '''
import os, pathlib
from pydantic import BaseModel
from mcp_functions import Elicit, Step, serve, tool

HERE = pathlib.Path(__file__).parents[2]  # a file beside the code would be a change of it

class Approval(BaseModel):
    pay: bool

def transfer(key: str) -> str:
    with (HERE / "bank").open("a") as book:
        book.write(key + chr(10))
    if (HERE / "cut").exists():
        (HERE / "cut").unlink()
        os._exit(1)
    return "paid"

@tool(single_use="replay")
def pay(*, elicit: Elicit, step: Step) -> str:
    """Pay."""
    if not elicit("approval", "Pay?", Approval).pay:
        return "Nothing was paid."
    return step.keyed("transfer", transfer)

handler = serve(pay)
'''
TEMPLATE = """
Resources:
  Table: {Type: AWS::DynamoDB::Table}
  Key: {Type: AWS::KMS::Key}
  Pay:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: functions/pay/
      Timeout: 8
      MemorySize: 512
      Handler: app.handler
      Environment: {Variables: {MCP_STACK: "", MCP_STAGE: "", MCP_AUTH_MODE: "", MCP_KMS_KEYS: !GetAtt Key.Arn,
        MCP_TABLE: !Ref Table}}
"""
YES: dict[str, Any] = {"approval": {"action": "accept", "content": {"pay": True}}}
NO: dict[str, Any] = {"approval": {"action": "accept", "content": {"pay": False}}}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "template.yaml").write_text(TEMPLATE, encoding="utf-8")
    return write_functions(tmp_path / "functions", {"pay/app.py": PAY})


def ask(running: Harness, state: str | None = None, answers: object = None) -> tuple[int, dict[str, Any]]:
    """Send one round to the function's own path."""
    more = {} if state is None else {"requestState": state, "inputResponses": answers}
    sent = wire.message("tools/call", {"name": "pay", "arguments": {}, **more})
    connection = HTTPConnection(urlsplit(running.url).netloc, timeout=60)
    try:
        connection.request("POST", "/mcp/pay", json.dumps(sent), wire.headers(sent))
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def text(answer: tuple[int, dict[str, Any]]) -> str:
    return str(answer[1]["result"]["content"][0]["text"])


@pytest.mark.parametrize("runtime", [False, True], ids=["in process", "runtime"])
def test_a_payment_is_made_once_in_both_modes(directory: Path, tmp_path: Path, *, runtime: bool) -> None:
    if runtime:
        modes.skip_without_runtime()
    with Harness(directory, state_dir=tmp_path / "state", runtime=runtime) as running:
        state = ask(running)[1]["result"]["requestState"]
        assert [text(ask(running, state, YES)) for _ in range(3)] == ["paid"] * 3
        status, refused = ask(running, state, NO)
        assert (status, refused["error"]["code"]) == (400, -32602)
    assert len((tmp_path / "bank").read_text(encoding="utf-8").split()) == 1


LONG = """
from mcp_functions import Step, serve, tool

@tool(single_use="replay")
def pay(*, step: Step) -> str:
    return step("pay", lambda: "paid ") * 100_000

handler = serve(pay)
"""


@pytest.mark.parametrize("runtime", [False, True], ids=["in process", "runtime"])
def test_the_harness_has_a_bucket_for_a_function_that_names_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, runtime: bool
) -> None:
    if runtime:
        modes.skip_without_runtime()
    written = TEMPLATE.replace("!Ref Table}}", '!Ref Table, MCP_BLOBS: ""}}')
    (tmp_path / "template.yaml").write_text(written, encoding="utf-8")
    directory = write_functions(tmp_path / "functions", {"pay/app.py": LONG})
    monkeypatch.setenv("MCP_BLOBS", "mine")
    with Harness(directory, state_dir=tmp_path / "state", runtime=runtime) as running:
        state = ask(running)[1]["result"]["requestState"]
        assert [text(ask(running, state, {})) for _ in range(2)] == ["paid " * 100_000] * 2
    monkeypatch.delenv("MCP_BLOBS")
    with Harness(directory, state_dir=tmp_path / "state", runtime=runtime) as running:
        state = ask(running)[1]["result"]["requestState"]
        assert text(ask(running, state, {})) == "paid " * 100_000
        assert "its answer was not kept" in text(ask(running, state, {}))


def test_a_worker_killed_during_a_payment_leaves_a_lease_and_the_same_idempotency_key(
    directory: Path, tmp_path: Path
) -> None:
    modes.skip_without_runtime()
    with Harness(directory, state_dir=tmp_path / "state", runtime=True) as running:
        state = ask(running)[1]["result"]["requestState"]
        (tmp_path / "cut").touch()
        assert ask(running, state, YES)[0] >= 500  # API Gateway's answer for a Lambda that crashed
        assert ask(running, state, NO)[0] == 400
        while (answer := ask(running, state, YES))[0] == 503:
            time.sleep(0.5)
        assert text(answer) == "paid"
        assert text(ask(running, state, YES)) == "paid"
    keys = (tmp_path / "bank").read_text(encoding="utf-8").split()
    assert (len(keys), len(set(keys))) == (2, 1)  # the bank was asked twice, for one transfer
