"""The terminal of the user who runs the command `call`.

`Terminal` writes lines, and reads what the user types. `result_text`, `notification_text` and `block_text` say what the
user sees of a result, a notification and a content block.
"""

import json
import sys
from typing import Literal, TextIO, TypeAlias

import click

from mcp_functions.protocol.wire_types import ContentBlock, JSONRPCMessage, JSONValue, Params, ResultObject, Schema
from mcp_functions_harness.calling import values
from mcp_functions_harness.terminal.safe_text import safe_line, write_styled

Refusal: TypeAlias = Literal["decline", "cancel"]  # the actions by which a user refuses
REFUSALS: dict[str, Refusal] = {"/decline": "decline", "/cancel": "cancel"}  # by what a user types


class InputEnded(Exception):
    """Stdin is a pipe or a file, and has no more lines."""


class QuestionRefused(Exception):
    """The user declines or cancels a question."""

    def __init__(self, action: Refusal) -> None:
        """Refuse with an action."""
        super().__init__(action)
        self.action = action


class Terminal:
    """Writes to the user, and reads from stdin, which may also be a pipe or a file."""

    def __init__(self, out: TextIO) -> None:
        """Write to `out`, also while `sys.stdout` is redirected."""
        self._out = out

    def write(self, text: str, *, bold: bool = False, dim: bool = False) -> None:
        """Write a line, or several."""
        write_styled(text, self._out, bold=bold, dim=dim)

    def ask_line(self, prompt: str) -> str:
        """Ask for a line.

        Raises:
            QuestionRefused: the user types /decline, /cancel or Ctrl-D, which cancels.
            InputEnded: stdin is no terminal, and has no more lines.
        """
        click.echo(safe_line(prompt), nl=False, file=self._out)
        line = sys.stdin.readline()
        has_ended = not line  # at a terminal, by Ctrl-D
        if not sys.stdin.isatty():
            self.write("")  # ends the line of the prompt, as the Enter key does at a terminal
            if has_ended:
                raise InputEnded
        elif has_ended:
            raise QuestionRefused(action="cancel")
        answer = line.strip()
        if answer in REFUSALS:
            raise QuestionRefused(REFUSALS[answer])
        return answer

    def ask_value(self, label: str, schema: Schema, *, required: bool) -> JSONValue:
        """Ask until the user types a value that fits its schema. Enter alone gives the schema's default, or None.

        Raises:
            QuestionRefused, InputEnded: as in `ask_line`.
        """
        prompt = f"  {label}{_prompt_hint(schema, required=required)}: "
        while True:
            text = self.ask_line(prompt)
            if not text and "default" in schema:
                return schema["default"]
            if not text and not required:
                return None
            try:
                return values.read_valid(text, schema)
            except ValueError as error:
                self.write(f"  {error}")


def _prompt_hint(schema: Schema, *, required: bool) -> str:
    """Return what a prompt says in brackets: what the user may type, and what Enter alone means."""
    hints = []
    expected = values.expected_input(schema)
    if expected:
        hints.append(expected)
    if "default" in schema:
        hints.append(f"Enter: {schema['default']}")
    elif not required:
        hints.append("Enter: none")
    return f" ({'; '.join(hints)})" if hints else ""


def result_text(result: ResultObject) -> str:
    """Return the text of the result of a tool, a prompt or a resource."""
    if "messages" in result:
        return "\n".join(f"{message['role']}: {block_text(message['content'])}" for message in result["messages"])
    blocks = result.get("content") or result.get("contents") or ()
    if not blocks and "structuredContent" in result:
        return json.dumps(result["structuredContent"], ensure_ascii=False, indent=2)
    return "\n".join(map(block_text, blocks))


def notification_text(notification: JSONRPCMessage) -> str:
    """Return the line of a notification with progress or a log message; "" for any other."""
    params = notification.get("params", {})
    match notification.get("method"):
        case "notifications/progress":
            return f"  {_progress(params)}  {params.get('message', '')}".rstrip()
        case "notifications/message":
            data = params.get("data")
            message = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
            return f"  {params.get('level')}: {message}"
    return ""


def _progress(params: Params) -> str:
    """Return the progress in percent; without a total, the number itself. The server may send other values."""
    done, total = params.get("progress"), params.get("total")
    if total and isinstance(done, int | float) and isinstance(total, int | float):
        return f"{100 * done / total:.0f} %"
    return str(done)


def block_text(block: ContentBlock) -> str:
    """Return the text of a content block; if it has none, its URI, or else its type in brackets."""
    text = block.get("text") or block.get("resource", {}).get("text") or block.get("uri")
    if text:
        return str(text)
    kind = f"{block.get('type') or 'data'} {block.get('mimeType', '')}".rstrip()
    return f"[{kind}]"
