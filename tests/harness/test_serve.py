"""What `serve` does when files change and calls end. `test_serve_command.py` starts the real command."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions.protocol.constants import META_FORM, WORKER_SUFFIX
from mcp_functions_harness import catalog
from mcp_functions_harness.command import run
from mcp_functions_harness.commands import serve as serve_module
from mcp_functions_harness.harness import Harness
from mcp_functions_harness.lambdas.service import Outcome
from mcp_functions_harness.problems import Problem
from mcp_functions_harness.reloading import Reloader
from mcp_functions_harness.terminal.outputs import TextOutput
from tests.harness.conftest import GREET, write_functions

if TYPE_CHECKING:
    from pathlib import Path

FRONT = """
from pathlib import Path
from mcp_functions import serve_catalog

handler = serve_catalog(Path(__file__).with_name("catalog.json"))
"""


def test_a_file_that_is_saved_while_the_catalog_is_written_is_loaded_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    functions = write_functions(tmp_path / "functions", {"mcp/app.py": FRONT, "greet/app.py": GREET})
    write = catalog.write

    def save_and_write(directory: Path, new: Any) -> Path:  # noqa: ANN401
        (functions / "greet/app.py").write_text(GREET.replace("Greet whoever", "Welcome whoever"), encoding="utf-8")
        return write(directory, new)

    with Harness(functions, state_dir=tmp_path / "state") as harness:
        lines: list[str] = []
        reloader = Reloader(harness, lines.append)
        with monkeypatch.context() as patch:
            patch.setattr(catalog, "write", save_and_write)
            reloader.refresh_catalog()
        reloader.reload()  # the first look after a save waits for the second
        reloader.reload()
        assert "reloaded greet" in lines


@pytest.mark.parametrize(("words", "reuse"), [([], True), (["--no-reuse"], False)])
def test_without_reuse_each_invocation_gets_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], *, reuse: bool
) -> None:
    received: dict[str, Any] = {}

    def harness(_functions: Path, **options: Any) -> None:  # noqa: ANN401 - the options of Harness
        received.update(options)
        raise Problem(message="enough")

    monkeypatch.setattr(serve_module, "Harness", harness)
    functions = write_functions(tmp_path / "functions", {})
    assert run(["serve", "--functions", str(functions), "--runtime", *words]) != 0
    assert received["reuse"] == reuse


def test_the_line_of_a_call_without_a_response_does_not_say_done() -> None:
    event = json.dumps({"body": json.dumps({"method": "tools/call", "params": {"name": "greet"}})}).encode()
    out = io.StringIO()
    outcome = Outcome(payload=b"null", request_id="1", milliseconds=1)
    TextOutput(out).write_call("greet", event, outcome)
    assert out.getvalue() == "  round 1 · greet · 1 ms\n"


@pytest.mark.parametrize(("questions", "ending"), [({"seat": {}}, "asks seat in a form"), ({}, "goes on in a form")])
def test_the_line_of_a_round_that_a_form_continues_does_not_say_done(questions: dict[str, Any], ending: str) -> None:
    event = json.dumps({"body": json.dumps({"method": "tools/call", "params": {"name": "book"}})}).encode()
    result = {"content": [], "_meta": {META_FORM: {"state": "ks1.", "questions": questions}}}
    payload = json.dumps({"statusCode": 200, "body": json.dumps({"result": result})}).encode()
    out = io.StringIO()
    TextOutput(out).write_call("book", event, Outcome(payload=payload, request_id="1", milliseconds=1))
    assert out.getvalue() == f"  round 1 · book · {ending} · 1 ms\n"


@pytest.mark.parametrize(
    ("folder", "outcome", "is_named"),
    [
        ("sums", Outcome(payload=b"null", request_id="1", milliseconds=35_000), True),
        ("sums", Outcome(payload=b"null", request_id="1", milliseconds=1_000, error="Sandbox.Timedout"), True),
        ("sums", Outcome(payload=b"null", request_id="1", milliseconds=25_900), False),
        (f"sums{WORKER_SUFFIX}", Outcome(payload=b"null", request_id="1", milliseconds=35_000), False),
        ("mcp", Outcome(payload=b"null", request_id="1", milliseconds=35_000), False),
    ],
    ids=["longer than Lambda allows", "ended at its Timeout", "in time", "a worker", "the endpoint, which waits"],
)
def test_a_round_near_its_deadline_names_the_limit_and_the_remedies(
    folder: str, outcome: Outcome, *, is_named: bool
) -> None:
    out = io.StringIO()
    TextOutput(out).write_call(folder, b"{}", outcome)
    named = [word for word in ("28 s", "steps", "a task", "mcp-functions docs tasks") if word in out.getvalue()]
    assert len(named) == (4 if is_named else 0)
