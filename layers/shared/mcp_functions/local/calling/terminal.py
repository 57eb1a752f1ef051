"""Reads what the user types, and writes to the user: questions, notifications, the result."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, TextIO

import click

from mcp_functions.local.calling import values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.wire_types import JSONValue

# the actions of the protocol without an answer
DECLINE = "decline"
CANCEL = "cancel"
ACTION_BY_COMMAND = {"/decline": DECLINE, "/cancel": CANCEL}  # what a user types instead of an answer


class InputEnded(Exception):
    """A pipe in place of the user has no more lines."""


class QuestionRefused(Exception):
    """The user declines or cancels; `action` is DECLINE or CANCEL."""

    def __init__(self, action: str) -> None:
        """Keep the action."""
        super().__init__(action)
        self.action = action


class Terminal:
    """The user's terminal, or a pipe in its place."""

    def __init__(self, out: TextIO) -> None:
        """Write to `out`, also while `sys.stdout` is redirected."""
        self._out = out

    def write(self, text: str, *, bold: bool = False, dim: bool = False) -> None:
        """Write a line. The text may be a stranger's: it cannot move the cursor or change colours."""
        # None: False would write "not bold" before the text, which is a code of the terminal too.
        click.secho(_printable(text), file=self._out, bold=bold or None, dim=dim or None)

    def ask_line(self, prompt: str) -> str:
        """Ask for a line.

        Raises:
            QuestionRefused: the user declines, or cancels, also by Ctrl-D.
            InputEnded: a pipe has no more lines.
        """
        click.echo(_printable(prompt), nl=False, file=self._out)
        text = sys.stdin.readline()
        is_person = sys.stdin.isatty()
        if not is_person:
            self.write("")  # the line break that a person types
        if not text and is_person:  # Ctrl-D
            raise QuestionRefused(CANCEL)
        if not text:
            raise InputEnded
        answer = text.strip()
        if answer in ACTION_BY_COMMAND:
            raise QuestionRefused(ACTION_BY_COMMAND[answer])
        return answer

    def ask_value(self, label: str, schema: Mapping[str, Any], root: Mapping[str, Any], *, required: bool) -> JSONValue:
        """Ask for a value until it fits its schema; None, if it is left out.

        Args:
            label: names the value for the user.
            schema: the JSON Schema of the value.
            root: the schema around it, which may have its definitions.
            required: whether it cannot be left out.

        Raises:
            QuestionRefused: the user declines, or cancels, also by Ctrl-D.
            InputEnded: a pipe has no more lines.
        """
        prompt = f"  {label}{_hint(schema, required=required)}: "
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


def _hint(schema: Mapping[str, Any], *, required: bool) -> str:
    """Return the choices or the type, the default, and whether the value may be left out."""
    hints = []
    if values.hint(schema):
        hints.append(values.hint(schema))
    if "default" in schema:
        hints.append(f"Enter: {schema['default']}")
    elif not required:
        hints.append("Enter: none")
    return f" ({'; '.join(hints)})" if hints else ""


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in text)


def result_text(result: Mapping[str, Any]) -> str:
    """Return the text of a tool's, a prompt's or a resource's result."""
    if "messages" in result:
        return "\n".join(f"{message['role']}: {_block_text(message['content'])}" for message in result["messages"])
    blocks = result.get("content") or result.get("contents") or ()
    if not blocks and "structuredContent" in result:
        return json.dumps(result["structuredContent"], ensure_ascii=False, indent=2)
    return "\n".join(map(_block_text, blocks))


def notification_text(notification: Mapping[str, Any]) -> str:
    """Return the line of a notification: progress, or a log message; nothing for others."""
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
    total = params.get("total")
    if not total:
        return str(params["progress"])
    return f"{100 * params['progress'] / total:.0f} %"


def _block_text(block: Mapping[str, Any]) -> str:
    """Return the text of a content block, or its URI, or its kind in brackets."""
    text = block.get("text") or block.get("resource", {}).get("text") or block.get("uri")
    if text:
        return str(text)
    kind = f"{block.get('type') or 'data'} {block.get('mimeType', '')}".rstrip()
    return f"[{kind}]"
