"""The terminal of the user who runs the command `call`.

`Terminal` writes lines, and reads what the user types. `result_text`, `notification_text` and `block_text` say what the
user sees of a result, a notification and a content block.
"""

import json
import sys
from collections.abc import Mapping
from typing import Any, TextIO

import click

from mcp_functions.protocol.wire_types import JSONValue
from mcp_functions_harness.calling import values
from mcp_functions_harness.terminal.safe_text import safe_line, write_styled

# the actions with which MCP lets a user refuse a question
DECLINE = "decline"
CANCEL = "cancel"
# by the text that a user types instead of an answer
ACTIONS = {"/decline": DECLINE, "/cancel": CANCEL}


class InputEnded(Exception):
    """Stdin is a pipe or a file, and has no more lines."""


class QuestionRefused(Exception):
    """The user declines or cancels a question; `action` is DECLINE or CANCEL."""

    def __init__(self, action: str) -> None:
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
        line = sys.stdin.readline()  # "" at the end of the input
        if not sys.stdin.isatty():
            self.write("")  # ends the line of the prompt, as the Enter key does at a terminal
            if not line:
                raise InputEnded
        elif not line:  # Ctrl-D
            raise QuestionRefused(CANCEL)
        answer = line.strip()
        if answer in ACTIONS:
            raise QuestionRefused(ACTIONS[answer])
        return answer

    def ask_value(self, label: str, schema: Mapping[str, Any], root: Mapping[str, Any], *, required: bool) -> JSONValue:
        """Ask until the user types a value that fits its schema.

        Args:
            label: what the prompt calls the value.
            schema: the JSON Schema of the value.
            root: the whole schema, with the definitions that `schema` may refer to.
            required: whether the user must give a value.

        Returns:
            The value. Enter alone gives the schema's default, or None if there is no default.

        Raises:
            QuestionRefused: as in `ask_line`.
            InputEnded: as in `ask_line`.
        """
        prompt = f"  {label}{_prompt_hint(schema, required=required)}: "
        while True:
            text = self.ask_line(prompt)
            if not text and "default" in schema:
                return schema["default"]
            if not text and not required:
                return None
            try:
                return values.read_valid(text, schema, root)
            except ValueError as error:
                self.write(f"  {error}")


def _prompt_hint(schema: Mapping[str, Any], *, required: bool) -> str:
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


def result_text(result: Mapping[str, Any]) -> str:
    """Return the text of the result of a tool, a prompt or a resource."""
    if "messages" in result:
        return "\n".join(f"{message['role']}: {block_text(message['content'])}" for message in result["messages"])
    blocks = result.get("content") or result.get("contents") or ()
    if not blocks and "structuredContent" in result:
        return json.dumps(result["structuredContent"], ensure_ascii=False, indent=2)
    return "\n".join(map(block_text, blocks))


def notification_text(notification: Mapping[str, Any]) -> str:
    """Return the line of a notification with progress or a log message; "" for any other."""
    params: Mapping[str, Any] = notification.get("params", {})
    match notification.get("method"):
        case "notifications/progress":
            return f"  {_progress(params)}  {params.get('message', '')}".rstrip()
        case "notifications/message":
            data = params.get("data")
            message = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
            return f"  {params.get('level')}: {message}"
    return ""


def _progress(params: Mapping[str, Any]) -> str:
    """Return the progress in percent; without a total, the number itself."""
    total = params.get("total")
    if not total:
        return str(params["progress"])
    return f"{100 * params['progress'] / total:.0f} %"


def block_text(block: Mapping[str, Any]) -> str:
    """Return the text of a content block; if it has none, its URI, or else its type in brackets."""
    text = block.get("text") or block.get("resource", {}).get("text") or block.get("uri")
    if text:
        return str(text)
    kind = f"{block.get('type') or 'data'} {block.get('mimeType', '')}".rstrip()
    return f"[{kind}]"
