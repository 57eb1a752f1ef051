"""What the reader of `demo` sees: plain text, one block a round."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.local.lambdas import Invocation

SHOWN = 24, 6  # characters of a state, from its beginning and from its end


class Page:
    """Writes the conversation down while it happens."""

    def __init__(self, out: TextIO) -> None:
        """Write to `out`; headings are bold where it is a terminal."""
        self._out = out
        self._bold = ("\033[1m", "\033[0m") if out.isatty() else ("", "")

    def say(self, text: str) -> None:
        """Write a line."""
        self._write(f"{text}\n")

    def head(self, text: str) -> None:
        """Begin a block."""
        self._write(f"{self._bold[0]}{text}{self._bold[1]}\n")

    def sent(self, tool: str, arguments: Mapping[str, Any], answers: Mapping[str, Any], carried: int) -> None:
        """Show one call: its arguments, the answers by key, and the round whose state it carries (0: none)."""
        self._line("client", f"tools/call {tool} {json.dumps(arguments)}")
        for key, answer in answers.items():
            self._line("", f"  answers {key}: {json.dumps(answer)}")
        if carried:
            self._line("", f"  carries the state of round {carried}")

    def ran(self, invocation: Invocation) -> None:
        """Show the Lambda invocation that answered."""
        name, lasted = f"local-{invocation.folder}", f"{invocation.milliseconds:.1f} ms"
        where = f" as pid {invocation.pid}" if invocation.pid else ""
        self._line("Lambda", f"{name} ran {lasted}{where} and ended, request {invocation.request_id}")

    def asked(self, key: str, message: str, schema: Mapping[str, Any]) -> None:
        """Show one question and its form."""
        self._line("asks", f"{key}: {message}")
        for name, field in schema["properties"].items():
            self._line("", f"  {name}: {' | '.join(field['enum']) if 'enum' in field else field['type']}")

    def state(self, sealed: str) -> None:
        """Show what the client carries, which it cannot read."""
        first, last = SHOWN
        self._line("state", f"{sealed[:first]}...{sealed[-last:]}  sealed, {len(sealed)} characters\n")

    def result(self, text: str) -> None:
        """Show how the call ended."""
        self._line("result", f"{text}\n")

    def refused(self, round_: int, at: int, code: int, message: str) -> None:
        """Show a state that was changed at one character, and what became of it."""
        self.head("Somebody changes the state")
        self._line("client", f"sends round {round_} again, with character {at} of the state changed")
        self._line("refused", f"{code} {message}\n")

    def _line(self, label: str, text: str) -> None:
        self._write(f"  {label:<8} {text}\n")

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
