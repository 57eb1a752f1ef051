"""Asks the user at the terminal what a server asks, and builds the answer that the protocol expects.

the question's method     what the user does
elicitation/create        fills in a form, or opens a URL
sampling/createMessage    types what a model would say
roots/list                names folders
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcp_functions_harness.calling.terminal import Terminal, block_text

HELP = "(/decline or /cancel instead of an answer)"
ACCEPT = "accept"  # the `action` of an answered elicitation


def ask(terminal: Terminal, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Ask the user one question, and return the answer.

    Raises:
        QuestionRefused: the user declines or cancels.
        InputEnded: there is no more input.
    """
    if method == "sampling/createMessage":
        return _ask_model(terminal, params)
    if method == "roots/list":
        return _ask_roots(terminal)
    if params.get("mode") == "url":
        return _ask_url(terminal, params)
    return _ask_form(terminal, params)


def refusal(method: str, action: str) -> dict[str, Any]:
    """Build the answer to a question that the user refuses; `action` is DECLINE or CANCEL."""
    if method == "elicitation/create":
        return {"action": action}
    # In the protocol only elicitation has an action. Other questions are refused with a JSON-RPC error.
    return {"code": -1, "message": "The user rejected the request."}


def completion(text: str) -> dict[str, Any]:
    """Build the answer to sampling/createMessage."""
    content = {"type": "text", "text": text}
    return {"role": "assistant", "content": content, "model": "terminal", "stopReason": "endTurn"}


def roots(paths: str) -> dict[str, Any]:
    """Build the answer to roots/list from paths with commas between them."""
    folders = [Path(path.strip()).expanduser().resolve() for path in paths.split(",") if path.strip()]
    return {"roots": [{"uri": folder.as_uri(), "name": folder.name} for folder in folders]}


def _ask_form(terminal: Terminal, params: Mapping[str, Any]) -> dict[str, Any]:
    terminal.write(f"\n{params.get('message', '')}", bold=True)
    terminal.write(f"  {HELP}", dim=True)
    schema: Mapping[str, Any] = params.get("requestedSchema", {})
    content = {}
    for name, field_schema in schema.get("properties", {}).items():
        if "description" in field_schema:
            terminal.write(f"  {field_schema['description']}")
        label = field_schema.get("title") or name
        value = terminal.ask_value(label, field_schema, schema, required=name in schema.get("required", ()))
        if value is not None:  # None: the user left it out
            content[name] = value
    return {"action": ACCEPT, "content": content}


def _ask_url(terminal: Terminal, params: Mapping[str, Any]) -> dict[str, Any]:
    terminal.write(f"\n{params.get('message', '')}", bold=True)
    terminal.write(f"  {params.get('url', '')}")
    terminal.ask_line(f"  open it in a browser, then press Enter {HELP}: ")
    return {"action": ACCEPT}


def _ask_model(terminal: Terminal, params: Mapping[str, Any]) -> dict[str, Any]:
    terminal.write("\nThe server asks your model:", bold=True)
    for message in params.get("messages", ()):
        terminal.write(f"  {message.get('role')}: {_message_text(message.get('content'))}")
    return completion(terminal.ask_line("  what the model says: "))


def _ask_roots(terminal: Terminal) -> dict[str, Any]:
    terminal.write("\nThe server asks which folders it may know.", bold=True)
    return roots(terminal.ask_line("  folders, with commas (Enter: none): "))


def _message_text(content: object) -> str:
    """Return the text of a sampling message, whose content is one block or a list; a wrong block is left out."""
    blocks = content if isinstance(content, list) else [content]
    return " ".join(block_text(block) for block in blocks if isinstance(block, dict))
