"""In development, `serve` says when a round repeats a write outside a step; on no sample does it say so."""

from __future__ import annotations

import inspect
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions_harness import Harness
from mcp_functions_harness.client import schema_values
from mcp_functions_harness.client.tasks import TaskClient
from mcp_functions_harness.loopback import HttpResponse, Loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ROOT = Path(__file__).parents[2]
FUNCTION = """
import asyncio, os, urllib.request
from pathlib import Path
import boto3, httpx2 as httpx
from mcp_functions import Elicit, Step, serve, tool

def post(url):
    urllib.request.urlopen(urllib.request.Request(url, data=b"{{}}", method="POST")).read()

def table():
    return boto3.resource("dynamodb").Table("local-Notes")

@tool
{define} pay(url: str, *, elicit: Elicit, step: Step) -> str:
    \"\"\"Pay.\"\"\"
    {line}
    elicit("sure", "Are you sure?", bool)
    elicit("really", "Really?", bool)
    {last}
    return "paid"

handler = serve(pay)
"""
TEMPLATE = """
Resources:
  Notes:
    Type: AWS::Serverless::SimpleTable
"""
WRITES = {
    "urllib": ("post(url)", "functions/pay/app.py:8: round 2 repeats what round 1 did: POST 127.0.0.1/charges; if it"),
    "httpx": ("httpx.post(url)", "functions/pay/app.py:16: round 2 repeats what round 1 did: POST 127.0.0.1/charges; "),
    "delete": ("httpx.delete(url + '?q=1')", "app.py:16: round 2 repeats what round 1 did: DELETE 127.0.0.1/charges; "),
    "boto3": (
        "table().put_item(Item={'id': 'a'})",
        "app.py:16: round 2 repeats what round 1 did: the AWS call PutItem",
    ),
    "open": (
        "open(os.environ['HERE'] + '/a.txt', 'a').close()",
        "app.py:16: round 2 repeats what round 1 did: a file is",
    ),
    "pathlib": (
        "Path(os.environ['HERE'], 'a.txt').write_text('a')",
        "is opened for writing, a.txt; if it must not happen",
    ),
}
NO_WRITES = {
    "a read": "httpx.get(url); urllib.request.urlopen(url).read(); open(__file__).close()",
    "a read of AWS": "table().get_item(Key={'id': 'a'}); table().scan()",
    "a write in a step": "step('pay', post, url); step.keyed('again', lambda key: httpx.post(url) and None)",
    "a write by a library": "import tempfile, logging; logging.getLogger('a').warning('b')",
}


@pytest.fixture
def url() -> Iterator[str]:
    with Loopback(max_body=1000) as server:
        server.start(lambda _request: HttpResponse(200, (), b"{}"))
        yield f"{server.url}/charges"


@pytest.fixture
def pay(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Call the function with its lines in two conversations, and return what the harness wrote to stderr."""

    def call(line: str, last: str = "", define: str = "def") -> str:
        monkeypatch.setenv("HERE", str(tmp_path))
        app = tmp_path / "functions/pay/app.py"
        app.parent.mkdir(parents=True)
        app.write_text(FUNCTION.format(line=line, last=last, define=define), encoding="utf-8")
        (tmp_path / "template.yaml").write_text(TEMPLATE, encoding="utf-8")
        with Harness(tmp_path / "functions", state_dir=tmp_path / "state") as harness:
            for _ in range(2):
                client = TaskClient(harness.url)
                result = client.run("pay", {"url": url}, lambda _key, request: schema_values.answer(request))
                assert result["content"][0]["text"] == "paid", capsys.readouterr().err
        return capsys.readouterr().err

    return call


@pytest.mark.parametrize("write", WRITES)
def test_a_repeated_write_is_named_once_with_its_line_and_remedy(write: str, pay: Callable[..., str]) -> None:
    line, told = WRITES[write]
    output = pay(line)
    assert told in output
    assert output.count(" repeats what round ") == 1


def test_a_repeated_write_of_an_async_function_is_named(pay: Callable[..., str]) -> None:
    line = "async with httpx.AsyncClient() as client: await client.post(url)"
    assert "functions/pay/app.py:16: round 2 repeats what round 1 did: POST" in pay(line, define="async def")


@pytest.mark.parametrize("lines", [*NO_WRITES.values(), "pass"], ids=[*NO_WRITES, "a write after the last question"])
def test_what_happens_once_or_changes_nothing_is_not_named(lines: str, pay: Callable[..., str]) -> None:
    assert " repeats what round " not in pay(lines, last="post(url)")


def test_no_sample_repeats_a_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calls: Mapping[str, Mapping[str, Any]] = {
        "get_weather": {"location": "Lisbon"},
        "update_work_item": {"workItemId": 4522, "fields": {"System.State": "Resolved"}},
        "book_trip": {"city": "Lisbon"},
        "pay_invoice": {"number": "2026-001"},
        "plan_trip": {"days": 3},
        "summarize_year": {"year": 2026},
        "audit_year": {"year": 2026},
    }
    with Harness(ROOT / "functions", state_dir=tmp_path) as harness:
        for name, arguments in calls.items():
            # a short pause: without one it would ask all the time whether the task has ended
            client = TaskClient(harness.url, sleep=lambda _seconds: time.sleep(0.1))
            assert client.run(name, arguments, lambda _key, request: schema_values.answer(request))
    assert inspect.cleandoc(capsys.readouterr().err).count(" repeats what round ") == 0
