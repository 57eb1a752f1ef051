"""The table of the harness is a file: its items are kept after a restart, even if the harness was killed."""

import json
import re
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from mcp_functions.aws.errors import ClientError
from mcp_functions_harness import Harness, Problem
from mcp_functions_harness.client.tasks import TaskClient
from mcp_functions_harness.doubles.dynamodb import DynamoDbApi
from mcp_functions_harness.doubles.tablefile import FILE, StoredTable, TableFile
from mcp_functions_harness.loopback import HttpRequest
from mcp_functions_harness.testing.dynamodb import MemoryTable
from tests.harness.conftest import write_functions

NOW = 1_785_000_000
NAME = "t"
ASKS = """
from pydantic import BaseModel
from mcp_functions import Elicit, Step, serve, tool

class Why(BaseModel):
    why: str

@tool
def resolve(bug: int, *, elicit: Elicit) -> str:
    return f"{bug}: " + elicit("why", "How was it resolved?", Why).why

@tool(task="required")
def slow(*, elicit: Elicit, step: Step) -> str:
    return "done: " + elicit("why", "Why?", Why).why

handler = serve(resolve, slow)
"""
# Confirms each write on its standard output, until it is killed.
WRITES = """
import sys
from itertools import count
from pathlib import Path
from mcp_functions_harness.doubles.tablefile import TableFile
file = TableFile(Path(sys.argv[1]), now=0)
for number in count():
    key, text = f"k{number % 50}", "x" * 30_000
    file.write(key, {"key": {"S": key}, "n": {"N": str(number)}, "text": {"S": text}})
    print(number, flush=True)
"""


def item(key: str, text: str = "", *, expires: int | None = NOW + 100) -> dict[str, Any]:
    ends = {} if expires is None else {"expires": {"N": str(expires)}}
    return {"key": {"S": key}, "sealed": {"S": text}, **ends}


def open_table(folder: Path, now: float = NOW) -> tuple[TableFile, StoredTable]:
    file = TableFile(folder, now=now)
    return file, StoredTable(file, NAME, MemoryTable(NAME))


def read_item(table: StoredTable, key: str) -> Any:  # noqa: ANN401 - DynamoDB's JSON
    wanted = {"TableName": NAME, "Key": {"key": {"S": key}}, "ConsistentRead": True}
    return table("GetItem", wanted).get("Item")


def write_item(table: StoredTable, what: dict[str, Any], **more: Any) -> None:  # noqa: ANN401 - DynamoDB's JSON
    table("PutItem", {"TableName": NAME, "Item": what, **more})


def test_a_restart_keeps_written_items_and_not_deleted_ones(tmp_path: Path) -> None:
    file, table = open_table(tmp_path)
    for key, text in (("a", "one"), ("a", "two"), ("b", "one"), ("c", "one")):
        write_item(table, item(key, text))
    table("DeleteItem", {"TableName": NAME, "Key": {"key": {"S": "c"}}})
    file.close()
    file, table = open_table(tmp_path)
    assert [read_item(table, key) for key in "abc"] == [item("a", "two"), item("b", "one"), None]
    file.close()


def test_a_refused_write_is_not_stored(tmp_path: Path) -> None:
    file, table = open_table(tmp_path)
    write_item(table, item("a", "first"))
    absent = {
        "ConditionExpression": "attribute_not_exists(#key) OR #expires <= :now",
        "ExpressionAttributeNames": {"#key": "key", "#expires": "expires"},
        "ExpressionAttributeValues": {":now": {"N": str(NOW)}},
    }
    with pytest.raises(ClientError):
        write_item(table, item("a", "second"), **absent)
    file.close()
    file, table = open_table(tmp_path)
    assert read_item(table, "a") == item("a", "first")
    file.close()


def test_expired_items_are_removed_and_the_file_shrinks(tmp_path: Path) -> None:
    file, table = open_table(tmp_path)
    write_item(table, item("kept"))
    write_item(table, item("author's", expires=None))
    for number in range(20):
        write_item(table, item(f"k{number}", "x" * 50_000, expires=NOW + 10))
    file.close()
    assert (tmp_path / FILE).stat().st_size > 1_000_000
    file, table = open_table(tmp_path, NOW + 11)
    assert [read_item(table, key) is None for key in ("kept", "author's", "k0", "k19")] == [False, False, True, True]
    file.close()
    assert (tmp_path / FILE).stat().st_size < 100_000


def test_a_harness_killed_during_a_write_damages_no_item(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITES, str(tmp_path)]
    for confirmed in (1, 60, 130):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writing:  # noqa: S603 - our own text
            assert writing.stdout
            for line in writing.stdout:
                if int(line) >= confirmed:
                    break
            writing.send_signal(signal.SIGKILL)
            last = max([int(line), *(int(rest) for rest in re.findall(r"^\d+$", writing.stdout.read(), re.MULTILINE))])
        with closing(TableFile(tmp_path, now=NOW)) as file:
            kept = {one["key"]["S"]: int(one["n"]["N"]) for one in file.items() if len(one["text"]["S"]) == 30_000}
            assert len(kept) == len(list(file.items()))
        for number in range(max(0, last - 49), last + 1):
            assert (
                kept[f"k{number % 50}"] >= number
            )  # the last confirmed write, or the next one, which was not confirmed


def test_two_harnesses_may_write_at_once(tmp_path: Path) -> None:
    both = [TableFile(tmp_path, now=NOW) for _ in range(2)]

    def write(file: TableFile, name: str) -> None:
        for number in range(50):
            file.write(f"{name}{number}", item(f"{name}{number}"))

    threads = [threading.Thread(target=write, args=pair) for pair in zip(both, "ab", strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(both[0].items())) == 100
    for file in both:
        file.close()


def test_a_write_that_cannot_reach_the_file_is_an_error(tmp_path: Path) -> None:
    file, table = open_table(tmp_path)
    api = DynamoDbApi(table)
    file.close()
    headers = (("authorization", "AWS4-x"), ("x-amz-target", "DynamoDB_20120810.PutItem"))
    body = json.dumps({"TableName": NAME, "Item": item("a")}).encode()
    assert api.answer(HttpRequest("POST", "/", headers, body)).status == 500


def test_the_file_equals_the_table_after_two_concurrent_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, table = open_table(tmp_path)
    api = DynamoDbApi(table)
    headers = (("authorization", "AWS4-x"), ("x-amz-target", "DynamoDB_20120810.PutItem"))

    def write(text: str) -> None:
        body = json.dumps({"TableName": NAME, "Item": item("a", text)}).encode()
        assert api.answer(HttpRequest("POST", "/", headers, body)).status == 200

    second = threading.Thread(target=write, args=["second"])
    write_to_file = file.write

    def write_slowly(key: str, written: Mapping[str, Any] | None) -> None:
        if written == item("a", "first"):
            second.start()
            second.join(0.2)  # it has to wait for the first request
        write_to_file(key, written)

    monkeypatch.setattr(file, "write", write_slowly)
    write("first")
    second.join()
    assert list(file.items()) == [read_item(table, "a")] == [item("a", "second")]
    file.close()


def test_only_the_owner_reads_the_file(tmp_path: Path) -> None:
    TableFile(tmp_path, now=NOW).close()
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


def test_a_damaged_file_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no database at all" * 100)
    with pytest.raises(Problem, match=r"table\.sqlite cannot be used .*: delete it; questions and tasks"):
        TableFile(tmp_path, now=NOW)


@pytest.fixture
def post(connect: Callable[[str], HTTPConnection]) -> Callable[..., Any]:
    def send(harness: Harness, body: Any, method: str = "POST", **named: str) -> Any:  # noqa: ANN401 - JSON
        common = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        headers = common | {name.replace("_", "-"): value for name, value in named.items()}
        connection = connect(harness.url)
        connection.request(
            method, "/mcp/asks", None if body is None else json.dumps({"jsonrpc": "2.0", **body}), headers
        )
        return connection.getresponse()

    return send


def test_a_question_to_a_client_of_2025_survives_a_restart_of_the_harness(
    tmp_path: Path, post: Callable[..., Any]
) -> None:
    directory, state_dir = write_functions(tmp_path / "functions", {"asks/app.py": ASKS}), tmp_path / "state"
    begin = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "a", "version": "1"},
    }
    call = {"name": "resolve", "arguments": {"bug": 7}}
    with Harness(directory, state_dir=state_dir) as harness:
        begun = post(harness, {"id": 1, "method": "initialize", "params": begin})
        begun.read()
        named = {"mcp_session_id": begun.headers["mcp-session-id"], "mcp_protocol_version": "2025-11-25"}
        stream = post(harness, {"id": 2, "method": "tools/call", "params": call}, **named).read().decode()
        question = json.loads(re.findall(r"^data: (.+)$", stream, re.MULTILINE)[-1])
        last = re.findall(r"^id: (.+)$", stream, re.MULTILINE)[-1]
    with Harness(directory, state_dir=state_dir) as harness:
        result = {"action": "accept", "content": {"why": "Fixed"}}
        assert post(harness, {"id": question["id"], "result": result}, **named).status == 202
        told = post(harness, None, "GET", last_event_id=last, **named).read().decode()
    assert '"text":"7: Fixed"' in told


def test_a_task_survives_a_restart_of_the_harness(tmp_path: Path) -> None:
    directory, state_dir = write_functions(tmp_path / "functions", {"asks/app.py": ASKS}), tmp_path / "state"

    def asked(task: Mapping[str, Any]) -> None:
        if task["status"] == "input_required":
            raise TimeoutError  # the user takes a break before answering

    with Harness(directory, state_dir=state_dir) as harness:
        client = TaskClient(f"{harness.url}/asks", told=asked)
        task = client.call("slow", {})
        with pytest.raises(TimeoutError):
            client.follow(task)
    with Harness(directory, state_dir=state_dir) as harness:
        answer = {"action": "accept", "content": {"why": "Lunch"}}
        result = TaskClient(f"{harness.url}/asks").follow(task, lambda _key, _request: answer)
    assert result["content"][0]["text"] == "done: Lunch"
