"""`serve` is where an author works: each test starts the real command, saves files, and calls again."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import threading
import time
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import pytest

from tests.harness.conftest import write_functions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FRONT = """
from pathlib import Path
from mcp_functions import serve_catalog

handler = serve_catalog(Path(__file__).with_name("catalog.json"))
"""
RESERVE = '''
import logging
import os
from mcp_functions import Elicit, Progress, serve, tool
import helpers

log = logging.getLogger("reserve")

@tool
def reserve_table(*, elicit: Elicit, progress: Progress) -> str:
    """Reserve a table."""
    log.info("a log line")
    print("a printed line")
    date = elicit("date", "When?", str)
    progress(1, total=2)
    phone = elicit("phone", "Your phone?", str)
    if phone == "secret-boom":
        raise ValueError(f"boom happened: {phone}")
    return f"{helpers.SIGN} {date} {phone} {os.environ['GREETING']}"

handler = serve(reserve_table)
'''
OTHER = '''
import os
from mcp_functions import serve, tool
import helpers

@tool
def other() -> str:
    """Say what is its own."""
    return f"{helpers.SIGN} {os.environ['GREETING']} {os.environ.get('OWN', 'hidden')}"

handler = serve(other)
'''
FILES = {
    "mcp/app.py": FRONT,
    "reserve/app.py": RESERVE,
    "reserve/helpers.py": "SIGN = 'mine'\n",
    "other/app.py": OTHER,
    "other/helpers.py": "SIGN = 'theirs'\n",
}
TEMPLATE = """
Parameters:
  Greeting:
    Type: String
    Default: hello
Globals:
  Function:
    Handler: app.handler
    MemorySize: 512
    Timeout: 28
    LoggingConfig: {LogFormat: JSON}
    Environment:
      Variables:
        GREETING: !Ref Greeting
        MCP_STACK: of the harness
        MCP_STAGE: of the harness
        MCP_AUTH_MODE: of the harness
        MCP_SERVER_NAME: of the harness
        MCP_SERVER_VERSION: of the harness
Resources:
  Key: {Type: 'AWS::KMS::Key'}
  Mcp: {Type: 'AWS::Serverless::Function', Properties: {CodeUri: functions/mcp/}}
  Other: {Type: 'AWS::Serverless::Function', Properties: {CodeUri: functions/other/}}
  Reserve:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: functions/reserve/
      Environment: {Variables: {OWN: reserve, MCP_KMS_KEYS: !GetAtt Key.Arn}}
"""
MODES = pytest.mark.parametrize("mode", [(), ("--runtime",)], ids=["in_process", "runtime"])
SECONDS = 60.0  # for a line that a test waits for


class Serving:
    """A running `serve`, and a client of it."""

    def __init__(self, root: Path, *words: str, out: int = subprocess.PIPE, reads: int | None = None) -> None:
        folder = root / "functions/mcp"
        self._is_first = folder.exists() and not (folder / "catalog.json").exists()
        command = [sys.executable, "-W", "error", "-m", "mcp_functions_harness", "serve", "--port", "0", *words]
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter
            command, cwd=root, text=True, stdout=out, stderr=subprocess.STDOUT
        )
        if reads is not None:
            os.close(out)
            self._process.stdout = os.fdopen(reads, errors="replace")
        self.root, self.lines, self._ids = root, list[str](), 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        self.url = self.wait_for("mcp-functions serves ").split()[-1]
        self.wait_for("Ctrl-C stops.")
        if self._is_first:
            self.wait_for("wrote functions/mcp/catalog.json")
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.terminate()
        self._process.wait(SECONDS)
        self._reader.join(SECONDS)
        if self._process.stdout:
            self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout
        with contextlib.suppress(OSError):  # the end of a terminal
            for line in self._process.stdout:
                self.lines.append(line.rstrip("\n"))

    def wait_for(self, text: str, *, after: int = 0) -> str:
        """Return the first line with a text."""
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            for line in self.lines[after:]:
                if text in line:
                    return line
            time.sleep(0.02)
        raise AssertionError(text + " is not in\n" + "\n".join(self.lines))

    def save(self, path: str, text: str, told: str) -> None:
        """Write a file of the project, and wait until the harness tells of it."""
        before = len(self.lines)
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")
        self.wait_for(told, after=before)

    def request(self, method: str, **params: object) -> dict[str, Any]:
        """Send a request, and return its result or error."""
        self._ids += 1
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        }
        message = {"jsonrpc": "2.0", "id": self._ids, "method": method, "params": {**params, "_meta": meta}}
        headers = {"content-type": "application/json", "mcp-protocol-version": "2026-07-28", "mcp-method": method}
        if "name" in params:
            headers["mcp-name"] = str(params["name"])
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=SECONDS)
        connection.request("POST", "/mcp", json.dumps(message), headers)
        answered: dict[str, Any] = json.loads(connection.getresponse().read())
        connection.close()
        result: dict[str, Any] = answered.get("result") or answered["error"]
        return result

    def call(self, state: str = "", name: str = "reserve_table", **answers: str) -> dict[str, Any]:
        """Call a tool, or answer its question."""
        inputs = {key: {"action": "accept", "content": {key: value}} for key, value in answers.items()}
        more = {"requestState": state, "inputResponses": inputs} if state else {}
        return self.request("tools/call", name=name, arguments={}, **more)


def text(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Serving]]:
    write_functions(tmp_path / "functions", FILES)
    (tmp_path / "template.yaml").write_text(TEMPLATE, encoding="utf-8")
    running: list[Serving] = []

    def start(*words: str) -> Serving:
        running.append(Serving(tmp_path, *words))
        return running[-1].__enter__()

    yield start
    for serving in running:
        serving.__exit__()


@MODES
def test_a_saved_change_takes_effect_and_earlier_states_remain_valid(
    serve: Callable[..., Serving], mode: tuple[str, ...]
) -> None:
    serving = serve(*mode)
    asked = serving.call()
    serving.save("functions/reserve/helpers.py", "SIGN = 'new'\n", "reloaded reserve")
    asked = serving.call(asked["requestState"], date="Monday")
    assert text(serving.call(asked["requestState"], phone="123")) == "new Monday 123 hello"


@MODES
def test_a_saved_change_of_a_description_updates_the_lists_and_the_catalog_file(
    serve: Callable[..., Serving], mode: tuple[str, ...]
) -> None:
    serving = serve(*mode)
    serving.save("functions/other/app.py", OTHER.replace("Say what", "Tell what"), "wrote functions/mcp/catalog.json")
    listed = {tool["name"]: tool["description"] for tool in serving.request("tools/list")["tools"]}
    assert listed["other"] == "Tell what is its own."
    assert "Tell what is its own." in (serving.root / "functions/mcp/catalog.json").read_text(encoding="utf-8")


def test_a_saved_syntax_error_is_shown_and_the_earlier_version_keeps_running(serve: Callable[..., Serving]) -> None:
    serving = serve()
    asked = serving.call()
    serving.save("functions/reserve/app.py", f"def broken(:\n{RESERVE}", "the version before this save goes on")
    said = "functions/reserve/app.py does not load: SyntaxError: invalid syntax (functions/reserve/app.py:1)"
    assert said in serving.lines
    asked = serving.call(asked["requestState"], date="Monday")
    serving.save("functions/reserve/app.py", RESERVE, "reloaded reserve")
    assert text(serving.call(asked["requestState"], phone="123")) == "mine Monday 123 hello"


def test_with_runtime_a_saved_syntax_error_fails_calls_until_the_next_save(
    serve: Callable[..., Serving],
) -> None:
    serving = serve("--runtime")
    serving.save("functions/other/app.py", "def broken(:\n", "other: its requests fail until a saved version loads")
    assert serving.call(name="other")["code"] == -32603
    serving.save("functions/other/app.py", OTHER, "reloaded other")
    assert text(serving.call(name="other")) == "theirs hello hidden"


@MODES
def test_a_folder_without_functions_mcp_is_served_at_every_printed_url(
    serve: Callable[..., Serving], tmp_path: Path, mode: tuple[str, ...]
) -> None:
    shutil.rmtree(tmp_path / "functions/mcp")
    serving = serve(*mode)
    urls = set(re.findall(r"http://127\.0\.0\.1:\d+[^\s\"')}]*", "\n".join(serving.lines)))
    assert serving.url in urls
    for url in urls:
        connection = HTTPConnection(urlsplit(url).netloc, timeout=SECONDS)
        connection.request("GET", urlsplit(url).path or "/")
        assert connection.getresponse().status != 404, url
        connection.close()
    assert [tool["name"] for tool in serving.request("tools/list")["tools"]] == ["other", "reserve_table"]
    asked = serving.call()
    asked = serving.call(asked["requestState"], date="Monday")
    assert text(serving.call(asked["requestState"], phone="123")) == "mine Monday 123 hello"


def test_without_functions_mcp_the_lists_follow_saved_functions_until_functions_mcp_is_there(
    serve: Callable[..., Serving], tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / "functions/mcp")
    serving = serve()
    serving.save("functions/other/app.py", OTHER.replace("other", "another"), "reloaded other")
    assert text(serving.call(name="another")) == "theirs hello hidden"
    serving.save("functions/mcp/app.py", "def broken(:\n", "functions/mcp/app.py does not load")
    assert text(serving.call(name="another")) == "theirs hello hidden"
    own = FRONT.replace('("catalog.json")', '("catalog.json"), instructions="Own"')
    serving.save("functions/mcp/app.py", own, "wrote functions/mcp/catalog.json")
    assert serving.request("server/discover")["instructions"] == "Own"
    before = len(serving.lines)
    shutil.rmtree(tmp_path / "functions/mcp")
    serving.wait_for("mcp is gone", after=before)
    assert "instructions" not in serving.request("server/discover")
    assert text(serving.call(name="another")) == "theirs hello hidden"


def test_without_functions_mcp_two_tools_of_one_name_are_reported(
    serve: Callable[..., Serving], tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / "functions/mcp")
    serving = serve()
    clash = OTHER.replace("import helpers", "").replace("{helpers.SIGN}", "third")
    serving.save("functions/third/app.py", clash, "two tools named 'other', in other and in third")
    serving.save("functions/third/app.py", clash.replace("other", "third_one"), "reloaded third")
    assert text(serving.call(name="other")) == "theirs hello hidden"


def test_serve_adds_a_new_function_and_removes_a_deleted_one(serve: Callable[..., Serving]) -> None:
    serving = serve()
    third = "from mcp_functions import serve, tool\n\n@tool\ndef third() -> str:\n    return 'three'\n\n"
    serving.save("functions/third/app.py", f"{third}handler = serve(third)\n", "+ tools third")
    assert text(serving.call(name="third")) == "three"
    before = len(serving.lines)
    (serving.root / "functions/third/app.py").unlink()
    serving.wait_for("- tools third", after=before)
    assert serving.call(name="third")["code"] == -32602


@MODES
def test_a_change_of_shared_code_reloads_every_function(serve: Callable[..., Serving], mode: tuple[str, ...]) -> None:
    serving = serve(*mode)
    uses = OTHER.replace("import helpers", "import prices").replace("helpers.SIGN", "prices.PRICE")
    shared = serving.root / "layers/common/python"
    shared.mkdir(parents=True)
    (shared / "prices.py").write_text("PRICE = 7\n", encoding="utf-8")
    serving.save("functions/other/app.py", uses, "reloaded")
    assert text(serving.call(name="other")) == "7 hello hidden"
    serving.save("layers/common/python/prices.py", "PRICE = 88\n", "reloaded")
    assert text(serving.call(name="other")) == "88 hello hidden"


@MODES
def test_a_variable_of_the_template_reaches_its_function_only_and_a_save_changes_it(
    serve: Callable[..., Serving], mode: tuple[str, ...]
) -> None:
    serving = serve(*mode)
    assert text(serving.call(name="other")) == "theirs hello hidden"
    serving.save("template.yaml", TEMPLATE.replace("Default: hello", "Default: welcome"), "reloaded")
    assert text(serving.call(name="other")) == "theirs welcome hidden"
    broken = "template.yaml is no template: line 3: mapping values are not allowed"
    serving.save("template.yaml", "Parameters:\n  A: b\n    Type: c: d\n", broken)
    assert text(serving.call(name="other")) == "theirs welcome hidden"


def test_a_saved_requirements_file_gets_a_line_with_the_command_that_installs_it(serve: Callable[..., Serving]) -> None:
    line = "functions/other/requirements.txt was saved: pip install --requirement functions/other/requirements.txt"
    serve().save("functions/other/requirements.txt", "httpx\n", line)


@MODES
def test_serve_prints_a_line_without_answers_for_each_round(
    serve: Callable[..., Serving], mode: tuple[str, ...]
) -> None:
    serving = serve(*mode)
    asked = serving.call()
    asked = serving.call(asked["requestState"], date="secret-date")
    serving.call(asked["requestState"], phone="secret-phone")
    last = serving.wait_for("round 3 · ")
    assert last.split(" · ")[:4] == ["  round 3", "reserve_table", "phone answered", "done"]
    parts = serving.wait_for("round 2 · ").split(" · ")
    assert parts[1:4] == ["reserve_table", "date answered", "asks phone"]
    assert parts[-1] == f"state {len(asked['requestState'])} B"
    serving.wait_for("  reserve  a log line")
    serving.wait_for("  reserve  a printed line")
    assert "secret" not in "\n".join(serving.lines)
    assert not [line for line in serving.lines if " · mcp · " in line]


def test_serve_shows_answers_on_request(serve: Callable[..., Serving]) -> None:
    serving = serve("--show-answers")
    serving.call(serving.call()["requestState"], date="Monday\x9b31m")
    answered = 'date answered {"action": "accept", "content": {"date": "Monday\\u009b31m"}}'
    assert answered in serving.wait_for("round 2 · ")


def test_the_number_of_the_round_survives_a_restart(serve: Callable[..., Serving]) -> None:
    first = serve()
    asked = first.call()
    first.__exit__()
    second = serve()
    second.call(asked["requestState"], date="Monday")
    assert second.wait_for("date answered").startswith("  round 2 · reserve_table")


@MODES
def test_serve_prints_the_whole_traceback_of_an_exception_and_the_client_gets_none(
    serve: Callable[..., Serving], mode: tuple[str, ...]
) -> None:
    serving = serve(*mode)
    asked = serving.call(serving.call()["requestState"], date="Monday")
    failed = serving.call(asked["requestState"], phone="secret-boom")
    assert failed["isError"]
    assert "boom happened" not in json.dumps(failed)
    serving.wait_for("ValueError: boom happened: secret-boom")
    serving.wait_for('functions/reserve/app.py", line 18, in reserve_table')
    assert serving.wait_for("round 3 · ").split(" · ")[3] == "failed"
    assert not [line for line in serving.lines if "/mcp_functions/" in line]


@MODES
def test_serve_names_a_missing_variable_with_its_fix(serve: Callable[..., Serving], mode: tuple[str, ...]) -> None:
    serving = serve(*mode)
    serving.save("functions/other/app.py", OTHER.replace("GREETING", "NOT_SET"), "reloaded other")
    assert serving.call(name="other")["isError"]
    serving.wait_for("add NOT_SET to Environment: Variables of the function in template.yaml")
    serving.wait_for("KeyError: 'NOT_SET'")


def test_serve_names_a_variable_of_another_function_with_the_same_fix(serve: Callable[..., Serving]) -> None:
    serving = serve()
    serving.save("functions/other/app.py", OTHER.replace(".get('OWN', 'hidden')", "['OWN']"), "reloaded other")
    assert serving.call(name="other")["isError"]
    serving.wait_for("To mend it: add OWN to Environment: Variables of the function in template.yaml")


def test_serve_escapes_control_characters_of_a_client(serve: Callable[..., Serving]) -> None:
    serving = serve()
    state = serving.call()["requestState"]
    serving.call(state, **{"\x1b]0;owned\x07\nforged line": ""})
    assert r"\u001b]0;owned\u0007\nforged line answered" in serving.wait_for("round 2 · ")


@MODES
def test_serve_prints_only_the_lines_of_lambda_as_json(serve: Callable[..., Serving], mode: tuple[str, ...]) -> None:
    serving = serve("--log", "json", *mode)
    serving.call()
    serving.wait_for('"message": "a log line"')
    line = json.loads(serving.wait_for('"message": "answered: input_required"'))
    assert (line["level"], line["handler"], line["round"]) == ("INFO", "reserve_table", 1)
    assert not [line for line in serving.lines if line.startswith("  round")]


LONG = """
import time
from mcp_functions import Progress, serve, tool

@tool
def other(*, progress: Progress) -> str:
    progress(1, total=4)
    time.sleep(2)
    return "done"

handler = serve(other)
"""


@pytest.mark.parametrize("no_color", ["", "1"])
def test_serve_shows_colours_and_a_progress_bar_and_respects_no_color(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_color: str
) -> None:
    for name in ("CI", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", no_color)
    write_functions(tmp_path / "functions", {**FILES, "other/app.py": LONG})
    ours, theirs = pty.openpty()
    with Serving(tmp_path, out=theirs, reads=ours) as serving:
        assert text(serving.call(name="other")) == "done"
        serving.call(name="other", state="forged")
        refused = serving.wait_for("refused -32602")
        assert " 25%" in serving.wait_for(" 25%")
    assert ("\x1b[31m" in refused) == (not no_color)


def test_serve_reports_imports_that_lambda_would_not_find_at_the_start_and_after_a_save(
    serve: Callable[..., Serving],
) -> None:
    serving = serve()
    told = "functions/other/app.py imports pytest, which Lambda does not get: add pytest to functions/other/require"
    serving.save("functions/other/app.py", OTHER.replace("import helpers", "import helpers, pytest"), told)


def test_a_function_cannot_import_the_folder_of_another(serve: Callable[..., Serving]) -> None:
    serving = serve()
    told = "No module named 'functions' on Lambda: move functions to layers/common/python/ (functions/other/app.py:4)"
    serving.save(
        "functions/other/app.py", OTHER.replace("import helpers", "from functions.reserve import helpers"), told
    )
