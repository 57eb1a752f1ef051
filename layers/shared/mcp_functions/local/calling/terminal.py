"""Reads what the user types, and writes what the conversation says: questions, notifications, the result."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, Literal

import click

from mcp_functions.local.calling import values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.wire_types import JSONValue

# what a user types instead of an answer -> the action of the protocol
INSTEAD: dict[str, Literal["decline", "cancel"]] = {"/decline": "decline", "/cancel": "cancel"}
NEEDED = "an answer is needed"


class NotAnswered(Exception):
    """The user declines or cancels, or the input has ended; `action` is "decline", "cancel" or ""."""

    def __init__(self, action: str) -> None:
        """Keep the action."""
        super().__init__(action)
        self.action = action


class Terminal:
    """The user's terminal, or a pipe in its place."""

    def __init__(self, *, err: bool) -> None:
        """Write to stderr (`err`) or to stdout, as it is now: a function may print meanwhile."""
        self._out = sys.stderr if err else sys.stdout

    def say(self, text: str, *, bold: bool = False, dim: bool = False) -> None:
        """Write a line. The text may be a stranger's: it cannot move the cursor or change colours."""
        click.secho(_printable(text), file=self._out, bold=bold or None, dim=dim or None)

    def line(self, prompt: str) -> str:
        """Read a line.

        Raises:
            NotAnswered: the user declines or cancels, or there is no more input.

        """
        shown = _printable(prompt)
        is_person = sys.stdin.isatty()
        try:
            typed = self._edited(shown) if is_person and self._out.isatty() else self._piped(shown)
        except EOFError:
            self.say("")
            action = "cancel" if is_person else ""  # a person pressed Ctrl-D, a pipe has ended
            raise NotAnswered(action) from None  # the end of the input is no error, so it needs no traceback
        text = typed.strip()
        if text in INSTEAD:
            raise NotAnswered(INSTEAD[text])
        return text

    def value(self, label: str, schema: Mapping[str, Any], root: Mapping[str, Any], *, required: bool) -> JSONValue:
        """Read a value until it fits its schema; None, if it is left out.

        Args:
            label: names the value for the user.
            schema: the JSON Schema of the value.
            root: the schema around it, which may have its definitions.
            required: whether it cannot be left out.

        Raises:
            NotAnswered: the user declines or cancels, or there is no more input.

        """
        prompt = f"  {label}{_about(schema, required=required)}: "
        while True:
            text = self.line(prompt)
            if not text and "default" in schema:
                return schema["default"]
            if not text and not required:
                return None
            problem, value = _read(text, schema, root)
            if not problem:
                return value
            self.say(f"  {problem}")

    def _edited(self, prompt: str) -> str:
        with redirect_stdout(self._out):  # input() writes its prompt there, and lets the user edit the line
            return input(prompt)

    def _piped(self, prompt: str) -> str:
        click.echo(prompt, nl=False, file=self._out)
        text = sys.stdin.readline()
        if not text:
            raise EOFError
        if not sys.stdin.isatty():
            self.say("")  # the newline that a terminal would show
        return text


def text(result: Mapping[str, Any]) -> str:
    """Return the text of a tool's, a prompt's or a resource's result."""
    if "messages" in result:
        return "\n".join(f"{one['role']}: {_block(one['content'])}" for one in result["messages"])
    blocks = result.get("content") or result.get("contents") or ()
    if not blocks and "structuredContent" in result:
        return json.dumps(result["structuredContent"], ensure_ascii=False, indent=2)
    return "\n".join(map(_block, blocks))


def notice(message: Mapping[str, Any]) -> str:
    """Return the line of a notification: progress, or a log message; nothing for others."""
    params: Mapping[str, Any] = message.get("params", {})
    match message.get("method"):
        case "notifications/progress":
            total, said = params.get("total"), params.get("message", "")
            done = f"{100 * params['progress'] / total:.0f} %" if total else f"{params['progress']}"
            return f"  {done}  {said}".rstrip()
        case "notifications/message":
            data = params.get("data")
            shown = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
            return f"  {params.get('level')}: {shown}"
    return ""


def _block(block: Mapping[str, Any]) -> str:
    """Return the text of a content block, or its URI, or its kind in brackets."""
    text = block.get("text") or block.get("resource", {}).get("text") or block.get("uri")
    if text:
        return str(text)
    kind = f"{block.get('type') or 'data'} {block.get('mimeType', '')}".rstrip()
    return f"[{kind}]"


def _read(text: str, schema: Mapping[str, Any], root: Mapping[str, Any]) -> tuple[str, Any]:
    """Return why a text is wrong ("" if it is not), and its value."""
    if not text:
        return NEEDED, None
    try:
        value = values.read(text, schema)
    except ValueError as error:
        return str(error), None
    return values.fault(value, schema, root), value


def _about(schema: Mapping[str, Any], *, required: bool) -> str:
    """Return the choices or the type, the default, and whether the value may be left out."""
    parts = [values.hint(schema)]
    if "default" in schema:
        parts.append(f"Enter: {schema['default']}")
    elif not required:
        parts.append("Enter: none")
    shown = "; ".join(filter(None, parts))
    return f" ({shown})" if shown else ""


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in text)
