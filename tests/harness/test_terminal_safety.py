"""No command writes text from outside to a terminal as it is: a terminal would obey it.

Each command of `COMMANDS` runs here on hostile data. A new command needs an entry: what it shows of others' text.
"""

from __future__ import annotations

import io
import json
import logging
import re
import sys
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions.seal.binding import bind_request
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.keyring import Keyring
from mcp_functions.seal.keys import Scope
from mcp_functions.seal.request_state import RequestStates
from mcp_functions_harness import command
from mcp_functions_harness.calling.terminal import Terminal
from mcp_functions_harness.demo.rounds import Transcript
from mcp_functions_harness.doubles import keyfile
from mcp_functions_harness.harness import STATE_DIR
from mcp_functions_harness.inspection import key_source
from mcp_functions_harness.lambdas.service import Outcome
from mcp_functions_harness.loopback import Loopback, json_response
from mcp_functions_harness.terminal.outputs import JsonOutput, TextOutput
from mcp_functions_harness.terminal.safe_text import SafeStream, safe_line, safe_output, safe_text
from tests.harness.conftest import GREET, write_functions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from mcp_functions_harness.loopback import HttpRequest, HttpResponse

    Words = AbstractContextManager[Sequence[str]]  # a command line, and what must run meanwhile

# Clears the screen; hides a link; a C1 control; bell, backspace, return; the order of text; what nobody sees.
CONTROLS = "\x1b[2J\x1b]8;;http://e.example\x07\x9b31m\x08\x7f\u202e\u2066\u200b\ufeff\U000e0041"
EVIL = f"EVIL{CONTROLS}[red]"
FORGED = f"{EVIL}\r\nmcp-functions: all is well"
FORBIDDEN = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{CONTROLS[-5:]}]")
APP = '''
from mcp_functions import serve, tool

@tool
def evil() -> str:
    """Do evil."""
    return "x"

raise RuntimeError(%r)
'''


def assert_safe(text: str) -> None:
    """Check that a terminal obeys nothing in a text, which has the evil text all the same."""
    assert FORBIDDEN.findall(text) == []
    assert "EVIL" in text


@contextmanager
def hostile_server(*words: str) -> Iterator[Sequence[str]]:
    """Serve an endpoint whose every answer is evil; yield a command line with its URL in place of "URL"."""

    def answer(request: HttpRequest) -> HttpResponse:
        message = json.loads(request.body or b"{}")
        member: dict[str, Any] = {"error": {"code": -32603, "message": FORGED, "data": {"reason": FORGED}}}
        if message.get("method") in ("server/discover", "tools/list") and "--refused" not in words:
            tool = {"name": "t", "description": EVIL, "inputSchema": {"type": "object", "properties": {}}}
            info = {"io.modelcontextprotocol/serverInfo": {"name": EVIL, "version": EVIL}}
            member = {"result": {"resultType": "complete", "tools": [tool], "capabilities": {}, "_meta": info}}
        elif "--result" in words:
            text = {"type": "text", "text": FORGED}
            member = {"result": {"resultType": "complete", "content": [text], "structuredContent": {EVIL: EVIL}}}
        return json_response(200, {"jsonrpc": "2.0", "id": message.get("id"), **member})

    with Loopback(max_body=100_000) as server:
        server.start(answer)
        url = f"{server.url}/mcp"
        yield [url if word == "URL" else word for word in words if word not in ("--refused", "--result")]


def broken_function(*words: str) -> Words:
    """Write a function whose module raises an evil exception."""
    write_functions(Path("functions"), {"evil/app.py": APP % FORGED})
    return nullcontext(words)


def sealed_state() -> Words:
    """Seal evil answers with the key of the harness."""
    keyfile.load(STATE_DIR)
    scope = Scope("local/evil", "local", "1")
    with key_source.local_key(STATE_DIR, [scope], scope) as keys:
        envelope = Envelope(Keyring(keys.wrappings, scope, now=time.time), max_age=600)
        states = RequestStates(envelope, now=time.time, lifetime_seconds=600, anonymous=True)
        bound = bind_request("local/evil/local", "tools/call", {"name": EVIL, "arguments": {}}, None)
        record = {"answers": {EVIL: {"form": {"action": "accept", "content": {"it": FORGED}}}}, "steps": {}, "began": 1}
        token = states.seal(bound, None, asked={EVIL: "form"}, record=record)
    return nullcontext(["open", token, "--show-state", "--function", "evil"])


def evil_program(name: str, *words: str) -> Words:
    """Put a program onto the PATH that prints evil text, whatever it is asked."""
    program = Path("bin") / name
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nprint({EVIL!r})\n", encoding="utf-8")
    program.chmod(0o755)
    return nullcontext(words)


def evil_event() -> Words:
    """Write a response and the next event, which have evil text in them, as JSON escapes no part of it."""
    state = {"result": {"resultType": "input_required", "requestState": "ks1.a"}}
    Path("response.json").write_text(json.dumps({"body": json.dumps(state)}), encoding="utf-8")
    event = {"body": '{"requestState": "{{requestState}}"}', "note": "EVIL\u202e\x9b31m"}
    Path("event.json").write_text(json.dumps(event, ensure_ascii=False), encoding="utf-8")
    return nullcontext(["next", "response.json", "event.json"])


def project(*words: str) -> Words:
    """Write the two files of a deployment, without content."""
    Path("template.yaml").write_text("Resources: {}\n", encoding="utf-8")
    Path("samconfig.toml").write_text("version = 0.1\n", encoding="utf-8")
    write_functions(Path("functions"), {"greet/app.py": GREET})
    return nullcontext(words)


COMMANDS: dict[str, Callable[[], Words]] = {
    "add": lambda: project("add", EVIL),
    "adopt": lambda: nullcontext(["adopt", f"{EVIL}.py:server"]),
    "auth": lambda: nullcontext(["auth", f"--{EVIL}"]),
    "block": lambda: project("block", EVIL),
    "call": lambda: hostile_server("call", "--url", "URL", "t", "--result"),
    "call, as JSON": lambda: hostile_server("call", "--url", "URL", "t", "--json", "--result"),
    "call, refused": lambda: hostile_server("call", "--url", "URL", "t"),
    "call, no server": lambda: hostile_server("call", "--url", "URL", "t", "--refused"),
    "catalog": lambda: broken_function("catalog"),
    "demo": lambda: broken_function("demo"),
    "docs": lambda: nullcontext(["docs", EVIL]),
    "doctor": lambda: evil_program("sam", "doctor"),
    "emulator": lambda: nullcontext(["emulator", "--port", EVIL]),
    "events": lambda: nullcontext(["events", EVIL]),
    "init": lambda: nullcontext(["init", EVIL]),
    "kms": lambda: nullcontext(["kms", "--address", EVIL]),
    "new": lambda: nullcontext(["new", "tool", EVIL]),
    "next": evil_event,
    "remove": lambda: project("remove", EVIL),
    "open": sealed_state,
    "serve": lambda: nullcontext(["serve", "--functions", EVIL]),
    "start": lambda: project("start", "server", EVIL),
    "stop": lambda: project("stop", "function", EVIL, "greet"),
    "set": lambda: project("set", EVIL, "A=1"),
    "verify": lambda: hostile_server("verify", "URL"),
}


def test_every_command_is_tried() -> None:
    assert {name.partition(",")[0] for name in COMMANDS} == set(command.COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_terminal_obeys_nothing_that_a_command_writes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin", prepend=":")
    with COMMANDS[name]() as words:
        command.run(words)
    written = capfd.readouterr()
    assert_safe(written.out + written.err)
    assert "\nmcp-functions: all is well" not in written.err


def test_json_at_the_output_keeps_its_values(capfd: pytest.CaptureFixture[str]) -> None:
    with hostile_server("call", "--url", "URL", "t", "--json", "--result") as words:
        assert command.run(words) == 0
    assert json.loads(capfd.readouterr().out)["structuredContent"] == {EVIL: EVIL}


def test_an_unexpected_exception_is_safe_too(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_words: object, **_options: object) -> None:
        raise RuntimeError(EVIL)

    monkeypatch.setattr(command.main, "main", fail)
    assert command.run(["doctor"]) == 1
    assert_safe(capfd.readouterr().err)


class Screen(io.StringIO):
    """An output that is a terminal."""

    def isatty(self) -> bool:
        return True


def remove_styles(text: str) -> str:
    """Remove the colours of the commands themselves."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def write_lines_of_call(screen: Screen) -> None:
    terminal = Terminal(screen)
    terminal.write(EVIL, bold=True)
    terminal.write(EVIL, dim=True)


def write_transcript(screen: Screen) -> None:
    Transcript(screen).heading(EVIL)


def write_lines_of_serve(screen: Screen) -> None:
    output = TextOutput(screen)
    output.write(EVIL, "red")
    output.write_log(EVIL, EVIL)
    event = {"body": json.dumps({"method": "tools/call", "params": {"name": EVIL}})}
    outcome = Outcome(payload=b"{}", request_id="1", milliseconds=1, error=EVIL)
    output.write_call("evil", json.dumps(event).encode(), outcome)
    with output.capture():
        logging.getLogger("evil").warning(EVIL)


@pytest.mark.parametrize("write", [write_lines_of_call, write_transcript, write_lines_of_serve])
def test_a_line_with_a_style_is_escaped_and_keeps_its_style(
    write: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    screen = Screen()
    write(SafeStream(screen))
    written = screen.getvalue()
    assert "\x1b[" in written
    assert_safe(remove_styles(written))
    assert "[red]" in written


def test_each_line_of_a_log_text_has_the_name_of_its_function() -> None:
    screen = io.StringIO()
    TextOutput(screen).write_log("pay", "hello\n  round 1 · pay · done")
    assert screen.getvalue() == "  pay  hello\n  pay    round 1 · pay · done\n"


def test_the_lines_of_lambda_are_escaped(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    written = SimpleNamespace(JsonFormatter=logging.Formatter)
    monkeypatch.setitem(sys.modules, "awslambdaric.lambda_runtime_log_utils", written)
    with safe_output():
        output = JsonOutput(sys.stdout)
        output.write_log("evil", EVIL)
        output.write(EVIL)
    captured = capfd.readouterr()
    assert_safe(captured.out)
    assert_safe(captured.err)


@pytest.mark.parametrize(
    "text",
    ["plain\ttext\n", "\u0645\u06cc\u200c\u062e\u0648\u0627", "\U0001f468\u200d\U0001f469", "\u3000\xa0é", "[red]"],
)
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert safe_text(text) == text


def test_a_control_character_is_written_as_json_escapes_it() -> None:
    assert safe_text("a\x1b\r\x9b\u202e\U000e0041\ud800") == r"a\u001b\u000d\u009b\u202e\udb40\udc41\ud800"
    assert safe_line("a\nb\tc\x07") == r"a\nb c\u0007"
