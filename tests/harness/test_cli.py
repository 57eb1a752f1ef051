"""The commands of `python -m mcp_functions_harness`: their output and their exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from mcp_functions_harness.command import run as main
from mcp_functions_harness.loopback import Loopback
from tests.harness.conftest import GREET

if TYPE_CHECKING:
    from collections.abc import Callable

COMMAND = [sys.executable, "-W", "error", "-m", "mcp_functions_harness"]
HELLO = "def handler(event, context):\n    return 'hello'\n"
FRONT = """
from pathlib import Path
from mcp_functions import serve_catalog

handler = serve_catalog(Path(__file__).with_name("catalog.json"))
"""


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(
    project: Callable[[dict[str, str]], Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ran]:
    """Run a command where the project's functions are."""

    def command(*words: str, files: dict[str, str] | None = None) -> Ran:
        if files:
            project(files)
        code = main(words)
        return Ran(code, *capsys.readouterr())

    monkeypatch.chdir(project({}).parent)
    return command


def one_line(ran: Ran, *, code: int = 2) -> str:
    assert (ran.code, ran.out, ran.err.count("\n")) == (code, "", 1)
    assert ran.err.startswith("mcp-functions: ")
    return ran.err


def launch(directory: Path) -> subprocess.Popen[str]:
    command = [*COMMAND, "serve", "--port", "0"]
    return subprocess.Popen(command, cwd=directory, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # noqa: S603


def start(directory: Path) -> tuple[subprocess.Popen[str], str, list[str]]:
    """Start `serve`, and read its output until it is ready."""
    serving = launch(directory)
    assert serving.stdout
    said: list[str] = []
    while not said or "Ctrl-C" not in said[-1]:
        line = serving.stdout.readline()
        assert line, serving.communicate()[1]
        said.append(line.rstrip("\n"))
    return serving, said[0].split()[-1], said


def post(url: str, message: dict[str, Any]) -> dict[str, Any]:
    address = urlsplit(url)
    connection = HTTPConnection(address.netloc, timeout=60)
    name = message["params"]["name"]
    headers = {
        "content-type": "application/json",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": message["method"],
        "mcp-name": name,
    }
    connection.request("POST", address.path, json.dumps(message), headers)
    answered: dict[str, Any] = json.loads(connection.getresponse().read())
    connection.close()
    return answered


def call(id_: int, **more: object) -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    }
    params = {"name": "greet", "arguments": {}, "_meta": meta, **more}
    return {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}


def test_a_conversation_continues_after_a_restart_of_the_harness(
    project: Callable[[dict[str, str]], Path], run: Callable[..., Ran]
) -> None:
    directory = project({"greet/app.py": GREET, "mcp/app.py": FRONT}).parent
    assert run("catalog").out == f"{Path('functions/mcp/catalog.json')}: 1 handler\n"

    serving, url, said = start(directory)
    asked = post(url, call(1))["result"]
    serving.send_signal(signal.SIGINT)
    out, err = serving.communicate(timeout=60)
    assert (serving.returncode, err) == (0, "")
    assert said[2].split() == ["tool", "greet", "may", "ask"]
    assert [line.split(" · ")[:3] for line in out.splitlines()] == [["  round 1", "greet", "asks who"]]

    serving, url, _ = start(directory)
    answers = {"who": {"action": "accept", "content": {"name": "Ada"}}}
    ended = post(url, call(2, requestState=asked["requestState"], inputResponses=answers))
    serving.send_signal(signal.SIGTERM)
    _, err = serving.communicate(timeout=60)
    assert (serving.returncode, err) == (0, "")
    assert ended["result"]["content"][0]["text"] == "Ada"


def test_the_banner_shows_how_to_connect_and_that_states_have_no_principal(
    project: Callable[[dict[str, str]], Path],
) -> None:
    serving, url, said = start(project({"hello/app.py": HELLO}).parent)
    serving.terminate()
    serving.communicate(timeout=60)
    text = "\n".join(said)
    assert url.startswith("http://127.0.0.1:")
    assert url.endswith("/mcp")
    assert f'async with Client("{url}", elicitation_callback=...) as client:' in text
    assert said.index(f"mcp-functions serves {url}") == 0
    assert "AuthMode is none: a requestState is bound to no user" in text
    assert "function   hello" in text
    assert "no functions/mcp" in text


def test_serve_writes_a_stale_catalog_at_the_start(project: Callable[[dict[str, str]], Path]) -> None:
    directory = project({"greet/app.py": GREET, "mcp/app.py": FRONT})
    serving, _, _ = start(directory.parent)
    assert serving.stdout
    said = serving.stdout.readline()
    serving.terminate()
    serving.communicate(timeout=60)
    assert said.startswith(f"wrote {Path('functions/mcp/catalog.json')}: + tools greet")
    assert '"greet"' in (directory / "mcp/catalog.json").read_text(encoding="utf-8")


def test_serve_stops_although_a_function_hangs(project: Callable[[dict[str, str]], Path]) -> None:
    slow = "import time\ndef handler(event, context):\n    time.sleep(600)\n"
    serving, url, _ = start(project({"slow/app.py": slow}).parent)
    connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
    connection.request("POST", "/mcp/slow")
    serving.send_signal(signal.SIGINT)
    _, err = serving.communicate(timeout=60)
    connection.close()
    assert (serving.returncode, err) == (0, "")


def test_a_signal_stops_serve_while_functions_load(project: Callable[[dict[str, str]], Path]) -> None:
    slow = "import time\nprint('loading', flush=True)\ntime.sleep(600)\n"
    serving = launch(project({"slow/app.py": slow}).parent)
    assert serving.stdout
    assert serving.stdout.readline() == "  slow  loading\n"
    serving.send_signal(signal.SIGINT)
    assert (*serving.communicate(timeout=60), serving.returncode) == ("", "", 0)


def test_a_problem_ends_the_process_with_exit_code_2(tmp_path: Path) -> None:
    command = [*COMMAND, "serve"]
    ran = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=False)  # noqa: S603
    assert "there is no folder functions" in one_line(Ran(ran.returncode, ran.stdout, ran.stderr))


def test_a_port_in_use_is_reported_in_one_line(run: Callable[..., Ran]) -> None:
    with Loopback(max_body=1) as taken:
        message = one_line(run("serve", "--port", str(taken.port), files={"hello/app.py": HELLO}))
    assert f"port {taken.port} cannot be used (Address already in use)" in message


def test_a_folder_without_functions_is_reported_in_one_line(run: Callable[..., Ran]) -> None:
    assert "no functions in functions" in one_line(run("serve", "--port", "0"))


def test_a_missing_directory_is_reported_in_one_line(run: Callable[..., Ran]) -> None:
    assert "there is no folder elsewhere" in one_line(run("serve", "--port", "0", "--functions", "elsewhere"))


def test_a_function_that_does_not_load_is_reported_in_one_line(run: Callable[..., Ran]) -> None:
    message = one_line(run("serve", "--port", "0", files={"bad/app.py": "import nothing_of_this_name\n"}))
    assert "functions/bad/app.py does not load: ModuleNotFoundError: No module named 'nothing_of_this_name'" in message


def test_with_debug_the_traceback_comes_first(run: Callable[..., Ran]) -> None:
    ran = run("serve", "--port", "0", "--debug", files={"bad/app.py": "raise ValueError('why')\n"})
    assert ran.code == 2
    assert ran.err.startswith("Traceback")
    message = "mcp-functions: functions/bad/app.py does not load: ValueError: why (functions/bad/app.py:1)"
    assert ran.err.splitlines()[-1] == message


def test_a_damaged_key_is_reported_in_one_line(run: Callable[..., Ran]) -> None:
    Path(".mcp-functions").mkdir()
    Path(".mcp-functions/kms.json").write_text("{")
    message = one_line(run("serve", "--port", "0", files={"hello/app.py": HELLO}))
    assert f"{Path('.mcp-functions/kms.json')} is damaged: delete it" in message


def test_a_missing_moto_is_reported_in_one_line_with_its_fix(
    run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "moto.kms.models", None)
    message = one_line(run("serve", "--port", "0", files={"hello/app.py": HELLO}))
    assert "is not installed: pip install 'mcp-functions[local]'" in message


def test_serve_restores_the_signal_handlers(run: Callable[..., Ran]) -> None:
    before = [signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)]
    run("serve", "--port", "0")
    assert [signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)] == before


@pytest.mark.parametrize("words", [[], ["brew"], ["serve", "--port", "many"], ["next", "one"]])
def test_unknown_arguments_are_reported_in_one_line_that_names_the_help(
    words: list[str], run: Callable[..., Ran]
) -> None:
    assert "See mcp-functions" in one_line(run(*words))


def test_catalog_check_prints_the_difference_and_exits_with_1(run: Callable[..., Ran]) -> None:
    ran = run("catalog", "--check", files={"greet/app.py": GREET, "mcp/app.py": FRONT})
    assert (ran.code, ran.err) == (1, "")
    assert ran.out.splitlines()[1] == "  + tools greet"
    assert not Path("functions/mcp/catalog.json").exists()
    run("catalog")
    assert run("catalog", "--check") == (0, "the catalog is up to date\n", "")


def test_a_catalog_without_a_front_door_is_reported_in_one_line(run: Callable[..., Ran]) -> None:
    assert "the catalog belongs beside the front door's app.py" in one_line(
        run("catalog", files={"greet/app.py": GREET})
    )


def test_next_event_puts_the_state_of_a_response_file_into_an_event(
    run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    response = json.dumps({"statusCode": 200, "body": '{"id": 1, "result": {"requestState": "ks1.x"}}'})
    Path("1.json").write_text(response)
    Path("2.json").write_text(json.dumps({"body": '{"params": {"requestState": "{{requestState}}"}}'}))
    ran = run("next", "1.json", "2.json")
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(json.loads(ran.out)["body"]) == {"params": {"requestState": "ks1.x"}}
    with open(os.open("1.json", os.O_RDONLY)) as piped:  # noqa: PTH123 - stands for stdin
        monkeypatch.setattr("sys.stdin", piped)
        assert run("next", "-", "2.json") == ran


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.json", "event.json"], "nowhere.json cannot be read: FileNotFoundError"),
        (["final.json", "nowhere.json"], "nowhere.json cannot be read: FileNotFoundError"),
        (["utf-16.json", "event.json"], "utf-16.json cannot be read: UnicodeDecodeError"),
        (["-", "-"], "only one of RESPONSE and EVENT can be -"),
        (["final.json", "event.json"], "RESPONSE has no requestState: it is the final result"),
    ],
)
def test_a_conversation_that_cannot_be_continued_is_reported_in_one_line(
    run: Callable[..., Ran], words: list[str], message: str
) -> None:
    Path("final.json").write_text('{"body": "{\\"result\\": {}}"}')
    Path("event.json").write_text("{}")
    Path("utf-16.json").write_text("{}", encoding="utf-16")
    assert message in one_line(run("next", *words))


# Waits as `serve` does, only more often; the signal comes at any moment of it.
STOPPED = """
import os, signal, threading
from mcp_functions_harness.commands.options import until_stopped
for number in range(150):
    with until_stopped() as stopped:
        threading.Timer(0.0005 * (number % 7), os.kill, (os.getpid(), signal.SIGINT)).start()
        while not stopped():
            pass
"""


def test_serve_stops_at_any_moment() -> None:
    subprocess.run([sys.executable, "-c", STOPPED], check=True, timeout=60)  # noqa: S603 - this interpreter
