"""Conversations in flight while the toolkit is upgraded or rolled back: two versions, one key, one table.

The earlier version is an earlier commit, which `git archive` writes into a folder. A clone without it cannot try this.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tarfile
import textwrap
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from mcp_functions_harness.client.tasks import Refused, TaskClient
from tests.support import upgrade_child

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.protocol.wire_types import ResultObject

ROOT = Path(__file__).parents[2]
EARLIER_VERSION = "d336661"  # of 0.1.0; tests/seal/vectors/states/0.1.0.json is its state
FOLDERS = ("layers/shared", "harness")  # from which this version is imported; the earlier one is in the first alone


class Version(NamedTuple):
    """A version of the toolkit: the folders from which it is imported, and the module of its command."""

    folders: list[Path]
    command: str


FUNCTIONS = {
    "book": """
        from pathlib import Path
        from mcp_functions import Elicit, Step, serve, tool
        from pydantic import BaseModel

        class Seat(BaseModel):
            seat: str

        class Meal(BaseModel):
            meal: str

        def reserve(city: str) -> str:
            with Path("reserved").open("a") as file:
                file.write(city)
            return city

        @tool
        def book(city: str, *, elicit: Elicit, step: Step) -> str:
            '''Book a flight.'''
            seat = elicit("seat", "Which seat?", Seat).seat
            held = step("reserve", reserve, city)
            return f"{held}, {seat}, {elicit('meal', 'Which meal?', Meal).meal}"

        handler = serve(book)
    """,
    "pay": """
        from mcp_functions import Elicit, serve, tool
        from pydantic import BaseModel

        class Sure(BaseModel):
            sure: bool

        @tool(single_use="replay")
        def pay(amount: int, *, elicit: Elicit) -> str:
            '''Pay.'''
            return f"paid {amount}: {elicit('sure', 'Sure?', Sure).sure}"

        handler = serve(pay)
    """,
    "audit": """
        from pathlib import Path
        from mcp_functions import Elicit, Step, serve, tool
        from pydantic import BaseModel

        class Right(BaseModel):
            right: bool

        def sum_up(year: int) -> int:
            with Path("summed").open("a") as file:
                file.write(str(year))
            return year + 1

        @tool(task="required")
        def audit(year: int, *, elicit: Elicit, step: Step) -> str:
            '''Audit a year.'''
            total = step("sum", sum_up, year)
            return f"{total}: {elicit('right', 'Is that right?', Right).right}"

        handler = serve(audit)
    """,
}


def write_earlier(commit: str, folder: Path) -> Path:
    """Write the toolkit of a commit into a folder, and return where it is imported from."""
    command = ["git", "archive", commit, FOLDERS[0]]
    archive = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)  # noqa: S603 - our own words
    if archive.returncode:
        pytest.skip(f"this clone has no commit {commit}: git fetch --unshallow")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder / FOLDERS[0]


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Version]:
    earlier = write_earlier(EARLIER_VERSION, tmp_path_factory.mktemp("earlier"))
    return {
        "earlier": Version([earlier], "mcp_functions.local"),
        "this": Version([ROOT / folder for folder in FOLDERS], "mcp_functions_harness"),
    }


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, code in FUNCTIONS.items():
        (tmp_path / "functions" / name).mkdir(parents=True)
        (tmp_path / "functions" / name / "app.py").write_text(textwrap.dedent(code), encoding="utf-8")
    return tmp_path


@contextmanager
def serving(version: Version, project: Path) -> Iterator[int]:
    """Serve the functions with one version of the toolkit. The key and the table stay in the project."""
    command = [sys.executable, "-m", version.command, "serve", "--port", "0"]
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "MCP_"))}
    ours["PYTHONPATH"] = os.pathsep.join(map(str, version.folders))
    process = subprocess.Popen(command, cwd=project, env=ours, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own words
    assert process.stdout
    try:
        found = (re.search(r"http://127\.0\.0\.1:(\d+)/mcp", line) for line in process.stdout)
        port = next((each[1] for each in found if each), None)
        assert port, "the server did not start"
        yield int(port)
    finally:
        process.terminate()
        process.communicate(timeout=60)


def call_tool(port: int, name: str, **params: Any) -> ResultObject:  # noqa: ANN401 - JSON
    return TaskClient(f"http://127.0.0.1:{port}/mcp/{name}", capabilities={"elicitation": {}}).call(name, **params)


def accept_question(result: ResultObject, **answers: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return what a client sends with the answers to a result."""
    assert result["inputRequests"].keys() == answers.keys()
    responses = {key: {"action": "accept", "content": content} for key, content in answers.items()}
    return {"requestState": result["requestState"], "inputResponses": responses}


@pytest.mark.parametrize(("before", "after"), [("earlier", "this"), ("this", "earlier")], ids=["upgrade", "rollback"])
def test_conversations_continue_in_another_version_of_the_toolkit(
    before: str, after: str, versions: dict[str, Version], project: Path
) -> None:
    city, amount = {"arguments": {"city": "Rome"}}, {"arguments": {"amount": 7}}
    with serving(versions[before], project) as port:
        seat = call_tool(port, "book", **city)
        meal = call_tool(port, "book", **city, **accept_question(seat, seat={"seat": "window"}))
        sure = call_tool(port, "pay", **amount)
        yes = accept_question(sure, sure={"sure": True})
        paid = call_tool(port, "pay", **amount, **yes)
        client = TaskClient(f"http://127.0.0.1:{port}/mcp/audit")
        task = client.call("audit", {"year": 2026})
        while task["status"] == "working":
            time.sleep(0.1)
            task = client.get(task["taskId"])
    with serving(versions[after], project) as port:
        told = call_tool(port, "book", **city, **accept_question(meal, meal={"meal": "soup"}))
        assert told["content"][0]["text"] == "Rome, window, soup"
        assert (project / "reserved").read_text(encoding="utf-8") == "Rome", "the recorded step runs once"
        assert call_tool(port, "pay", **amount, **yes) == paid, "a used round is answered from the table"
        with pytest.raises(Refused):
            call_tool(port, "pay", **amount, **accept_question(sure, sure={"sure": False}))
        client = TaskClient(f"http://127.0.0.1:{port}/mcp/audit")
        told = client.follow(task, lambda _key, _asked: {"action": "accept", "content": {"right": True}})
        assert told["content"][0]["text"] == "2027: True"
        assert (project / "summed").read_text(encoding="utf-8") == "2026", "the task's step runs once too"


BEFORE_SERIALIZATION = "4b454606"  # the last commit that wrote each type as pydantic validates it
LOST_BEFORE = {"SecretStr", "WithNoneDefault", "Counts"}  # their records had asterisks, or not all members


def test_records_and_forms_of_each_type_continue_in_another_version_of_the_toolkit(tmp_path: Path) -> None:
    written = upgrade_child.write_all()
    path = os.pathsep.join(map(str, [write_earlier(BEFORE_SERIALIZATION, tmp_path), ROOT]))
    command = [sys.executable, "-m", "tests.support.upgrade_child"]
    done = subprocess.run(  # noqa: S603 - our own words
        command, env={"PYTHONPATH": path}, input=json.dumps(written), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    earlier = json.loads(done.stdout)
    read = upgrade_child.read_all(earlier["written"])
    compared = 0
    for name, before in earlier["written"].items():
        now = written[name]
        assert before["form"] in (None, now["form"]), f"{name}: a user is asked once more"
        if before["record"] and name not in LOST_BEFORE:
            assert read[name] == before["returned"], f"{name}: an upgrade"
            assert earlier["read"][name] == now["returned"], f"{name}: a rollback"
            assert before["record"]["steps"]["it"][0] == now["record"]["steps"]["it"][0], f"{name}: the digest"
            compared += 1
    assert compared > 100, "most types of the corpus are compared"
