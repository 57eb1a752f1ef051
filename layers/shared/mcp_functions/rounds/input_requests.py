"""The three requests that a server may send to a client, the capabilities that they need, and their fingerprints."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol import content_blocks
from mcp_functions.protocol.errors import DeveloperError, MissingRequiredClientCapability
from mcp_functions.protocol.json_writer import base64url, dumps_sorted
from mcp_functions.protocol.messages import shows_forms
from mcp_functions.protocol.plain_values import MESSAGE, NotJson, role, to_json, type_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mcp_functions.protocol.wire_types import ElicitRequestFormParams, InputRequest, JSONObject, Model
    from mcp_functions.schemas import forms

ROLES = ("user", "assistant")
FORMS: dict[str, Any] = {"elicitation": {"form": {}}}  # as ClientCapabilities
PAGES: dict[str, Any] = {"elicitation": {"url": {}}}


def form_request(message: str, form: forms.Form) -> InputRequest:
    """Return the ElicitRequest of a form."""
    params: ElicitRequestFormParams = {"mode": "form", "message": message, "requestedSchema": form.schema()}
    return {"method": "elicitation/create", "params": params}


def url_request(message: str, url: str) -> InputRequest:
    """Return the ElicitRequest that asks the user to open a page."""
    from urllib.parse import urlsplit  # noqa: PLC0415 - only for pages

    parts = urlsplit(url)
    is_local = parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")
    has_blank = any(character.isspace() for character in url)
    if not parts.hostname or has_blank or not (parts.scheme == "https" or is_local):
        text = "an elicitation in URL mode needs an absolute https:// URL (http:// on this machine alone)"
        raise DeveloperError(text)
    return {"method": "elicitation/create", "params": {"mode": "url", "message": message, "url": url}}


def sampling_request(
    messages: str | Sequence[JSONObject | Model], max_tokens: int, options: Mapping[str, Any]
) -> InputRequest:
    """Return the CreateMessageRequest; see `Sample` for its arguments."""
    if max_tokens < 1:
        raise DeveloperError(rule="max_tokens must be 1 or more")
    if isinstance(messages, str):
        messages = [{"role": "user", "content": {"type": "text", "text": messages}}]
    conversation = [_message(message) for message in messages]
    _check_tool_results(conversation)
    params = {"messages": conversation, **_options(options), "maxTokens": max_tokens}
    return {"method": "sampling/createMessage", "params": params}


def roots_request() -> InputRequest:
    """Return the ListRootsRequest."""
    return {"method": "roots/list", "params": {}}


def _message(message: object) -> JSONObject:
    if role(message) == MESSAGE:
        message = content_blocks.to_wire(message)
    if isinstance(message, dict) and message.get("role") in ROLES and "content" in message:
        return message
    text = f"a message for the model is a SamplingMessage or a dict with role and content, not {type_name(message)}"
    raise DeveloperError(text)


def _options(options: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return dict(to_json(dict(options)))
    except NotJson as error:
        raise DeveloperError(rule=f"JSON cannot carry the options of the question to the model ({error})") from None


def _check_tool_results(messages: Sequence[JSONObject]) -> None:
    """Check a conversation with tools (client/sampling, "Tool Result Messages", "Tool Use and Result Balance")."""
    open_uses: set[str] = set()
    for message in messages:
        blocks = message["content"] if isinstance(message["content"], list) else [message["content"]]
        answered = {block["toolUseId"] for block in blocks if block.get("type") == "tool_result"}
        # "user messages that contain tool results MUST contain ONLY tool results"
        if answered and len(answered) != len(blocks):
            raise DeveloperError(rule="a message with a tool_result holds tool_results alone")
        # "every assistant message containing ToolUseContent … MUST be followed by a user message" with every result
        if answered != open_uses:
            text = "every tool_use is answered by its tool_result in the very next message, and nothing else is"
            raise DeveloperError(text)
        open_uses = {block["id"] for block in blocks if block.get("type") == "tool_use"}
    if open_uses:
        raise DeveloperError(rule="a tool_use at the end has no tool_result")


def fingerprint(request: InputRequest) -> str:
    """Return the digest of a question, 22 characters: an answer counts only for the same fingerprint."""
    return base64url(hashlib.sha256(dumps_sorted(request).encode()).digest()[:16])


def repeat_request(request: InputRequest, reason: str) -> InputRequest:
    """Return a question with the reason why the last answer is invalid."""
    match request:
        case {
            "method": "elicitation/create",
            "params": {"mode": "form", "message": str(message), "requestedSchema": requested},
        }:
            again = f"{message} (Please answer again: {reason}.)"
            return {
                "method": "elicitation/create",
                "params": {"mode": "form", "message": again, "requestedSchema": requested},
            }
    return request


def describe_request(request: InputRequest) -> str:
    """Return a question as text, for a model or a person whose client cannot show it."""
    match request:
        case {"params": {"mode": "url", "message": str(message), "url": str(url)}}:
            return f"{message} ({url})"
        case {"params": {"message": str(message), "requestedSchema": {"properties": dict(fields)}}}:
            return f"{message} ({'; '.join(_field_in_words(name, field) for name, field in fields.items())})"
        case {"method": "sampling/createMessage"}:
            return "a message of the client's model"
    return "the client's roots"


def _field_in_words(name: str, field: Mapping[str, Any]) -> str:
    choices = field.get("enum") or [choice["const"] for choice in field.get("oneOf", ())]
    return f"{name}: {' | '.join(map(str, choices)) or field.get('description') or field.get('type')}"


def check_capabilities(
    requests: Mapping[str, InputRequest], declared: Mapping[str, Any], *, earlier: bool = False
) -> None:
    """Refuse to ask what the client cannot show.

    "Servers MUST NOT send an inputRequests that the client has not declared support for in its capabilities."

    Args:
        requests: the questions, by key.
        declared: the client's capabilities.
        earlier: True for a client of 2025: the error's `data` then has the questions too.

    Raises:
        MissingRequiredClientCapability: the client cannot show a question. The error has the text of the questions,
            because the model may know the answers.
    """
    lacking = missing_capabilities(requests.values(), declared)
    if lacking:
        asks = {key: describe_request(request) for key, request in requests.items()}
        raise MissingRequiredClientCapability(lacking, asks, earlier=earlier)


def missing_capabilities(requests: Iterable[InputRequest], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the capabilities that these requests need and the client did not declare."""
    lacking: dict[str, Any] = {}
    for request in requests:
        needed = _needed(request)
        is_declared = shows_forms(declared) if needed is FORMS else _declares(declared, needed)
        if not is_declared:
            lacking = _merged(lacking, needed)
    # `{}` is the shorter form of `{"form": {}}`, for a client without any elicitation
    if lacking.get("elicitation") == {"form": {}} and "elicitation" not in declared:
        return {**lacking, "elicitation": {}}
    return lacking


def _needed(request: InputRequest) -> dict[str, Any]:
    if request["method"] == "elicitation/create":
        return PAGES if request["params"].get("mode") == "url" else FORMS
    match request:
        case {"method": "sampling/createMessage", "params": {"tools": _} | {"toolChoice": _}}:
            return {"sampling": {"tools": {}}}
        case {"method": "sampling/createMessage", "params": {"includeContext": "thisServer" | "allServers"}}:
            return {"sampling": {"context": {}}}
        case {"method": "sampling/createMessage"}:
            return {"sampling": {}}
    return {"roots": {}}


def _declares(declared: Mapping[str, Any], needed: Mapping[str, Any]) -> bool:
    for key, value in needed.items():
        member = declared.get(key)
        if not isinstance(member, dict) or not _declares(member, value):
            return False
    return True


def _merged(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _merged(left.get(key, {}), right.get(key, {})) for key in {**left, **right}}
