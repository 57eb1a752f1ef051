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
from mcp_functions.local.calling.terminal import NotAnswered
from mcp_functions.local.problems import stop

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from mcp_functions.local.calling.terminal import Terminal

HELP = "(/decline or /cancel instead of an answer)"
ACCEPT = "accept"
REJECTED = {"code": -1, "message": "The user rejected the request."}


@dataclass
class Answers:
    """The user of one call."""

    terminal: Terminal  # asks the user what the options do not answer
    given: Mapping[str, str]  # the answers of the options, by the key of a question, or by "key.field"
    declined: Collection[str]  # the keys of the questions to decline
    cancelled: Collection[str]  # the keys of the questions to cancel
    _answered: set[str] = field(default_factory=set, init=False)  # keys of questions whose given answer was sent

    def answer(self, key: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one question.

        Raises:
            Problem: the given answer does not fit, was refused, or there is none and no more input.

        """
        params: Mapping[str, Any] = request.get("params", {})
        if key in self._answered:
            stop(f"the server refused the answer to {key}, and asks: {params.get('message', '')}")
        try:
            return self._response(key, str(request.get("method")), params)
        except NotAnswered as instead:
            if not instead.action:
                stop(f"{key} has no answer: --answer {key}=..., --decline {key}, or type it at a terminal")
            if request.get("method") == "elicitation/create":
                return {"action": instead.action}
            return dict(REJECTED)  # other methods have no action, only an error

    def unused(self) -> list[str]:
        """List the keys of given answers to which no question came."""
        keys = {name.partition(".")[0] for name in self.given} | {*self.declined, *self.cancelled}
        return sorted(keys - self._answered)

    def _response(self, key: str, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the given answer to a question, or else ask the user.

        Raises:
            NotAnswered: it is declined or cancelled, or the input has ended.
        """
        given = {name: text for name, text in self.given.items() if name.partition(".")[0] == key}
        if given:
            self._answered.add(key)
        for action, keys in (("cancel", self.cancelled), ("decline", self.declined)):
            if key in keys:
                self._answered.add(key)
                raise NotAnswered(action)
        if method == "sampling/createMessage":
            return _completion(given.get(key) or self._ask_model(params))
        if method == "roots/list":
            return _roots(given.get(key) if given else self._ask_roots())
        if params.get("mode") == "url":
            return {"action": ACCEPT} if given else self._ask_url(params)
        schema: Mapping[str, Any] = params.get("requestedSchema", {})
        content = _content(key, given, schema) if given else self._ask_form(params, schema)
        return {"action": ACCEPT, "content": content}

    def _ask_form(self, params: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
        self.terminal.say(f"\n{params.get('message', '')}", bold=True)
        self.terminal.say(f"  {HELP}", dim=True)
        content = {}
        for name, member in schema.get("properties", {}).items():
            if "description" in member:
                self.terminal.say(f"  {member['description']}")
            label = member.get("title") or name
            value = self.terminal.value(label, member, schema, required=name in schema.get("required", ()))
            if value is not None:
                content[name] = value
        return content

    def _ask_url(self, params: Mapping[str, Any]) -> dict[str, Any]:
        self.terminal.say(f"\n{params.get('message', '')}", bold=True)
        self.terminal.say(f"  {params.get('url', '')}")
        self.terminal.line(f"  open it in a browser, then press Enter {HELP}: ")
        return {"action": ACCEPT}

    def _ask_model(self, params: Mapping[str, Any]) -> str:
        self.terminal.say("\nThe server asks your model:", bold=True)
        for message in params.get("messages", ()):
            self.terminal.say(f"  {message.get('role')}: {_text(message.get('content'))}")
        return self.terminal.line("  what the model says: ")

    def _ask_roots(self) -> str:
        self.terminal.say("\nThe server asks which folders it may know.", bold=True)
        return self.terminal.line("  folders, with commas (Enter: none): ")


def _content(key: str, given: Mapping[str, str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in a form from options: `key=value` for one field, `key.field=value` for each, or `key={JSON}`."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    content: dict[str, Any] = {}
    for name, text in given.items():
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
    problem = values.fault(content, schema, schema)
    if problem:
        stop(f"the answer to {key} does not fit: {problem}")
    return content


def _completion(text: str) -> dict[str, Any]:
    content = {"type": "text", "text": text}
    return {"role": "assistant", "content": content, "model": "terminal", "stopReason": "endTurn"}


def _roots(text: str | None) -> dict[str, Any]:
    names = [name.strip() for name in (text or "").split(",")]
    folders = [Path(name).expanduser().resolve() for name in names if name]
    return {"roots": [{"uri": folder.as_uri(), "name": folder.name} for folder in folders]}


def _text(content: object) -> str:
    blocks = content if isinstance(content, list) else [content]
    return " ".join(str(block.get("text", f"[{block.get('type')}]")) for block in blocks if isinstance(block, dict))
