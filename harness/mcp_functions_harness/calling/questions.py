"""Asks the user at the terminal what a server asks, and builds the answer that the protocol expects.

the question's method     what the user does
elicitation/create        fills in a form, or opens a URL
sampling/createMessage    types what a model would say
roots/list                names folders
"""

from pathlib import Path
from typing import Final

from mcp_functions.protocol.wire_types import ContentBlock, InputRequestParams, InputResponse, JSONObject, JSONValue
from mcp_functions_harness.calling import values
from mcp_functions_harness.calling.terminal import Refusal, Terminal, block_text

HELP = "(/decline or /cancel instead of an answer)"
ACCEPT: Final = "accept"  # the `action` of an answered elicitation


def ask(terminal: Terminal, method: str, params: InputRequestParams) -> InputResponse:
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


def refusal(method: str, action: Refusal) -> InputResponse:
    """Build the answer to a question that the user refuses."""
    if method == "elicitation/create":
        return {"action": action}
    # In the protocol only elicitation has an action. Other questions are refused with a JSON-RPC error.
    return {"code": -1, "message": "The user rejected the request."}


def completion(text: str) -> InputResponse:
    """Build the answer to sampling/createMessage."""
    content = {"type": "text", "text": text}
    return {"role": "assistant", "content": content, "model": "terminal", "stopReason": "endTurn"}


def roots(paths: str) -> InputResponse:
    """Build the answer to roots/list from paths with commas between them."""
    folders = [Path(path.strip()).expanduser().resolve() for path in paths.split(",") if path.strip()]
    return {"roots": [{"uri": folder.as_uri(), "name": folder.name} for folder in folders]}


def _ask_form(terminal: Terminal, params: InputRequestParams) -> InputResponse:
    terminal.write(f"\n{params.get('message', '')}", bold=True)
    terminal.write(f"  {HELP}", dim=True)
    form = params.get("requestedSchema", {})
    content: JSONObject = {}
    for name in form.get("properties", {}):
        schema = values.member(form, name)
        if "description" in schema:
            terminal.write(f"  {schema['description']}")
        label = schema.get("title") or name
        value = terminal.ask_value(label, schema, required=name in form.get("required", ()))
        if value is not None:  # None: the user left it out
            content[name] = value
    return {"action": ACCEPT, "content": content}


def _ask_url(terminal: Terminal, params: InputRequestParams) -> InputResponse:
    terminal.write(f"\n{params.get('message', '')}", bold=True)
    terminal.write(f"  {params.get('url', '')}")
    terminal.ask_line(f"  open it in a browser, then press Enter {HELP}: ")
    return {"action": ACCEPT}


def _ask_model(terminal: Terminal, params: InputRequestParams) -> InputResponse:
    terminal.write("\nThe server asks your model:", bold=True)
    for message in params.get("messages", ()):
        terminal.write(f"  {message.get('role')}: {_message_text(message.get('content'))}")
    return completion(terminal.ask_line("  what the model says: "))


def _ask_roots(terminal: Terminal) -> InputResponse:
    terminal.write("\nThe server asks which folders it may know.", bold=True)
    return roots(terminal.ask_line("  folders, with commas (Enter: none): "))


def _message_text(content: JSONValue) -> str:
    """Return the text of a sampling message, whose content is one block or a list; a wrong block is left out."""
    blocks: list[ContentBlock] = content if isinstance(content, list) else [content]
    return " ".join(block_text(block) for block in blocks if isinstance(block, dict))
