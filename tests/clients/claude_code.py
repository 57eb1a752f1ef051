"""Claude Code of a person, pinned, with a new home. It reaches no server but those of this machine.

Its model is a script: the program sends what it would send to the model to a server of the test.
"""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import termios
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance import node
from tests.support import http_servers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

PROGRAM = node.MODULES / "@anthropic-ai" / "claude-code" / "cli-wrapper.cjs"
KEY = "a dummy key"
NOBODY = "http://127.0.0.1:9"
ROWS = 50
CHUNK = 1 << 16
ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\].*?(?:\x07|\x1b\\)|.)|\s", re.DOTALL)
DOWN = "\x1b[B"
MARK = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}"  # of what has the focus
SECONDS = 60  # of waiting for what a working program does in five


class ClaudeCode:
    """The program.

    Args:
        home: an empty folder.
        model: the URL of its model.

    """

    def __init__(self, home: Path, model: str = NOBODY) -> None:
        self._command = [str(node.needed()), str(PROGRAM)]
        self._environment = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "TERM": "xterm-256color",
            "ANTHROPIC_BASE_URL": model,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "ENABLE_TOOL_SEARCH": "false",
        }
        self._home = home

    def answer_first_questions(self) -> None:
        """Answer what the program asks at its first start: the theme, the key, and whether it trusts the folder."""
        self._environment["ANTHROPIC_API_KEY"] = KEY
        answers = {
            "hasCompletedOnboarding": True,
            "customApiKeyResponses": {"approved": [KEY]},
            "projects": {str(self._home): {"hasTrustDialogAccepted": True}},
        }
        (self._home / ".claude.json").write_text(json.dumps(answers), encoding="utf-8")

    def run(self, *words: str) -> str:
        """Run the program to its end; return its output."""
        return subprocess.run(  # noqa: S603 - pinned
            [*self._command, *words],
            env=self._environment,
            cwd=self._home,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
            stdin=subprocess.DEVNULL,
        ).stdout

    @contextmanager
    def in_terminal(self, *words: str, columns: int) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
        """Run the program in a new terminal until the block ends; yields the process and our end of the terminal."""
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (ROWS, columns))
        running = subprocess.Popen(  # noqa: S603 - pinned
            [*self._command, *words],
            env=self._environment,
            cwd=self._home,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        try:
            yield running, ours
        finally:
            running.kill()
            running.wait()
            os.close(ours)


def read(terminal: int) -> bytes:
    """Return what a program has just written; nothing after its end."""
    try:
        return os.read(terminal, CHUNK)
    except OSError:  # Linux raises this when the program has closed its end
        return b""


class Person:
    """A person at the terminal, who reads what is new since the last key."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._written = b""
        self._has_grown = threading.Condition()
        threading.Thread(target=self._watch, daemon=True).start()

    def accept_yes(self, question: str, *, until: Callable[[], bool]) -> None:
        """Say yes in a form with one yes-or-no field.

        Args:
            question: of the form.
            until: whether the answer has had its effect, after a second of waiting at most.

        """
        self._wait_for(question)
        self._wait_for("Space to toggle")
        self._press(" ")
        self._wait_for("☒")
        self._press(DOWN)
        self._wait_for(f"{MARK} Accept")
        for _second in range(SECONDS):
            self._press("\r")  # a dialog ignores this key for a while after it has appeared
            if until():
                return
        pytest.fail(f"the answer to {question!r} had no effect")

    def _watch(self) -> None:
        while written := read(self._terminal):
            with self._has_grown:
                self._written += written
                self._has_grown.notify()

    def _wait_for(self, text: str) -> None:
        wanted = ESCAPE.sub("", text)
        with self._has_grown:
            found = self._has_grown.wait_for(lambda: wanted in self._new, timeout=SECONDS)
        assert found, f"{text!r} is not in {self._new[-2000:]}"

    def _press(self, keys: str) -> None:
        with self._has_grown:
            self._written = b""
        os.write(self._terminal, keys.encode())

    @property
    def _new(self) -> str:
        return ESCAPE.sub("", self._written.decode(errors="replace"))


class ScriptedModel:
    """A model that calls tools in turn, each after the result of the one before. Then it has nothing more to say.

    Attributes:
        url: its base URL.

    """

    def __init__(self, calls: Sequence[tuple[str, Mapping[str, object]]]) -> None:
        self.url = ""
        self._calls = calls
        self._heard = ""  # the last request, as JSON
        self._has_heard = threading.Condition()

    @contextmanager
    def listening(self) -> Iterator[ScriptedModel]:
        """Answer until the block ends."""
        model = self

        class Connection(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                said = model.answer(json.loads(body))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_args: object) -> None:
                pass

        with http_servers.listening(Connection) as host:
            self.url = f"http://{host}"
            yield self

    def has_heard(self, text: str, seconds: float = 1) -> bool:
        """Return whether the program has told the model this; wait so long for it."""
        with self._has_heard:
            return self._has_heard.wait_for(lambda: text in self._heard, timeout=seconds)

    def answer(self, request: Mapping[str, Any]) -> bytes:
        """Return the events of an answer: the next call, or the end of the turn."""
        if not request.get("tools"):  # the program asks for a title too, and gives no tools
            return _events(request["model"], {"type": "text", "text": "A title"})
        with self._has_heard:
            self._heard = json.dumps(request["messages"])
            self._has_heard.notify()
        results = self._heard.count('"type": "tool_result"')
        if results >= len(self._calls):
            return _events(request["model"], {"type": "text", "text": "Done."})
        name, arguments = self._calls[results]
        return _events(request["model"], {"type": "tool_use", "id": f"call-{results}", "name": name}, arguments)


def _events(model: str, block: Mapping[str, str], arguments: Mapping[str, object] | None = None) -> bytes:
    """Write one block of an assistant's message as the events of a stream."""
    text = {"type": "text_delta", "text": block.get("text", "")}
    delta = text if arguments is None else {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    empty = {**block, "text": ""} if arguments is None else {**block, "input": {}}
    message: dict[str, object] = {
        "id": "message",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
    }
    usage = {"input_tokens": 1, "output_tokens": 1}
    reason = "end_turn" if arguments is None else "tool_use"
    events = (
        {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    )
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()
