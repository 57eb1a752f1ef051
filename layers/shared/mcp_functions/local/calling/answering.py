"""Answers the questions of a call: from the options of the command, or from the user at the terminal.

    the server's question       the answer
    elicitation/create, form    fields, from --answer or typed
    elicitation/create, URL     the user has opened the page
    sampling/createMessage      what a model would say
    roots/list                  folders

Instead of an answer, the user may decline or cancel.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_functions.local.calling import values
from mcp_functions.local.calling.terminal import CANCEL, DECLINE, InputEnded, QuestionRefused
from mcp_functions.local.problems import stop

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from mcp_functions.local.calling.terminal import Terminal

HELP = "(/decline or /cancel instead of an answer)"
ACCEPT = "accept"
REJECTED = {"code": -1, "message": "The user rejected the request."}


@dataclass
class Answers:
    """The user of one call, and the answers that the options of the command contain."""

    terminal: Terminal  # asks the user what the options do not answer
    options: Mapping[str, str]  # --answer: by the key of a question, or by "key.field"
    keys_to_decline: Collection[str]  # --decline
    keys_to_cancel: Collection[str]  # --cancel
    _used_keys: set[str] = field(default_factory=set, init=False)  # keys of the questions that an option has answered

    def answer(self, key: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one question.

        Raises:
            Problem: the option does not fit, or was refused; or there is none, and no more input.

        """
        params: Mapping[str, Any] = request.get("params", {})
        if key in self._used_keys:
            stop(f"the server refused the answer to {key}, and asks: {params.get('message', '')}")
        try:
            return self._response(key, str(request.get("method")), params)
        except InputEnded:
            stop(f"{key} has no answer: --answer {key}=..., --decline {key}, or type it at a terminal")
        except QuestionRefused as refusal:
            if request.get("method") == "elicitation/create":
                return {"action": refusal.action}
            return dict(REJECTED)  # other methods have no action, only an error

    def unused_keys(self) -> list[str]:
        """List the keys in options for which no question came."""
        keys = {name.partition(".")[0] for name in self.options} | {*self.keys_to_decline, *self.keys_to_cancel}
        return sorted(keys - self._used_keys)

    def _response(self, key: str, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer of the options, or else ask the user.

        Raises:
            QuestionRefused: it is declined or cancelled.
            InputEnded: the options have no answer, and there is no more input.
        """
        options = {name: text for name, text in self.options.items() if name.partition(".")[0] == key}
        if options or key in self.keys_to_cancel or key in self.keys_to_decline:
            self._used_keys.add(key)
        if key in self.keys_to_cancel:
            raise QuestionRefused(CANCEL)
        if key in self.keys_to_decline:
            raise QuestionRefused(DECLINE)
        if method == "sampling/createMessage":
            return _completion(options.get(key) or self._ask_model(params))
        if method == "roots/list":
            return _roots(options.get(key, "") if options else self._ask_roots())
        if params.get("mode") == "url":
            return {"action": ACCEPT} if options else self._ask_url(params)
        schema: Mapping[str, Any] = params.get("requestedSchema", {})
        content = _content(key, options, schema) if options else self._ask_form(params, schema)
        return {"action": ACCEPT, "content": content}

    def _ask_form(self, params: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
        self.terminal.write(f"\n{params.get('message', '')}", bold=True)
        self.terminal.write(f"  {HELP}", dim=True)
        content = {}
        for name, member in schema.get("properties", {}).items():
            if "description" in member:
                self.terminal.write(f"  {member['description']}")
            label = member.get("title") or name
            value = self.terminal.ask_value(label, member, schema, required=name in schema.get("required", ()))
            if value is not None:
                content[name] = value
        return content

    def _ask_url(self, params: Mapping[str, Any]) -> dict[str, Any]:
        self.terminal.write(f"\n{params.get('message', '')}", bold=True)
        self.terminal.write(f"  {params.get('url', '')}")
        self.terminal.ask_line(f"  open it in a browser, then press Enter {HELP}: ")
        return {"action": ACCEPT}

    def _ask_model(self, params: Mapping[str, Any]) -> str:
        self.terminal.write("\nThe server asks your model:", bold=True)
        for message in params.get("messages", ()):
            self.terminal.write(f"  {message.get('role')}: {_text(message.get('content'))}")
        return self.terminal.ask_line("  what the model says: ")

    def _ask_roots(self) -> str:
        self.terminal.write("\nThe server asks which folders it may know.", bold=True)
        return self.terminal.ask_line("  folders, with commas (Enter: none): ")


def _content(key: str, options: Mapping[str, str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in a form from options: `key=value` for one field, `key.field=value` for each, or `key={JSON}`."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    content: dict[str, Any] = {}
    for name, text in options.items():
        member = name.partition(".")[2]
        if not member and len(properties) == 1:
            (member,) = properties
        is_json = not member or (name == key and text.startswith("{"))
        try:
            if is_json:
                content |= json.loads(text)
            elif member in properties:
                content[member] = values.read(text, properties[member])
            else:
                stop(f"the form has no {member}; it has: {', '.join(properties)}")
        except (ValueError, TypeError) as error:
            reason = str(error) if member else f"give {key}.FIELD=VALUE for: {', '.join(properties)}"
            stop(f"the answer to {key} does not fit: {reason}")
    problem = values.find_problem(content, schema, schema)
    if problem:
        stop(f"the answer to {key} does not fit: {problem}")
    return content


def _completion(text: str) -> dict[str, Any]:
    content = {"type": "text", "text": text}
    return {"role": "assistant", "content": content, "model": "terminal", "stopReason": "endTurn"}


def _roots(names: str) -> dict[str, Any]:
    """Return the folders of a list with commas."""
    folders = [Path(name.strip()).expanduser().resolve() for name in names.split(",") if name.strip()]
    return {"roots": [{"uri": folder.as_uri(), "name": folder.name} for folder in folders]}


def _text(content: object) -> str:
    blocks = content if isinstance(content, list) else [content]
    return " ".join(str(block.get("text", f"[{block.get('type')}]")) for block in blocks if isinstance(block, dict))
