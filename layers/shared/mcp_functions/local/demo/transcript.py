"""The transcript that a demo writes to the terminal: plain text, one block for each round."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.local.lambdas import Invocation

FIRST, LAST = 24, 6  # characters of a state that are shown, from its start and its end


class Transcript:
    """Writes a conversation while it happens."""

    def __init__(self, out: TextIO) -> None:
        """Write to `out`; on a terminal headings are bold."""
        self._out = out
        self._bold, self._plain = ("\033[1m", "\033[0m") if out.isatty() else ("", "")

    def write(self, text: str) -> None:
        """Write a line."""
        self._out.write(f"{text}\n")
        self._out.flush()

    def heading(self, text: str) -> None:
        """Start a block."""
        self.write(f"{self._bold}{text}{self._plain}")

    def line(self, label: str, text: str) -> None:
        """Write a line with a label."""
        self.write(f"  {label:<8} {text}")

    def call(self, tool: str, arguments: Mapping[str, Any], answers: Mapping[str, Any], state_of: int) -> None:
        """Show one call: its arguments, the answers by key, and the round whose state it returns (0: none)."""
        self.line("client", f"tools/call {tool} {json.dumps(arguments)}")
        for key, answer in answers.items():
            self.line("", f"  answers {key}: {json.dumps(answer)}")
        if state_of:
            self.line("", f"  carries the state of round {state_of}")

    def invocation(self, invocation: Invocation) -> None:
        """Show the Lambda invocation that answered."""
        process = f" as pid {invocation.pid}" if invocation.pid else ""
        ran = f"local_{invocation.folder} ran {invocation.milliseconds:.1f} ms{process} and ended"
        self.line("Lambda", f"{ran}, request {invocation.request_id}")

    def question(self, key: str, message: str, schema: Mapping[str, Any]) -> None:
        """Show one question and its form."""
        self.line("asks", f"{key}: {message}")
        for name, field in schema["properties"].items():
            self.line("", f"  {name}: {' | '.join(field['enum']) if 'enum' in field else field['type']}")

    def state(self, sealed: str) -> None:
        """Show the sealed state, which the client cannot read."""
        self.line("state", f"{sealed[:FIRST]}...{sealed[-LAST:]}  sealed, {len(sealed)} characters\n")

    def result(self, text: str) -> None:
        """Show the result of the call."""
        self.line("result", f"{text}\n")

    def refusal(self, round_: int, position: int, code: int, message: str) -> None:
        """Show a state with one changed character, and the server's error."""
        self.heading("An attacker changes the state")
        self.line("client", f"sends round {round_} again, with character {position} of the state changed")
        self.line("refused", f"{code} {message}\n")
