"""What the toolkit reads and changes in the JSON of a question.

    {"method": "elicitation/create", "params": {"mode": "form", "message": "Which seat?", "requestedSchema": {…}}}

The specification calls this JSON an InputRequest. It asks the user, the client's model, or the client for its roots.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.json_writer import base64url, dumps_sorted
from mcp_functions.protocol.messages import shows_forms, value_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_functions.protocol.wire_types import ClientCapabilities, JSONObject

# The client capabilities that questions need: the name, and the member that must be declared, or "".
FORMS = ("elicitation", "form")
URLS = ("elicitation", "url")
SAMPLING = ("sampling", "")
SAMPLING_WITH_TOOLS = ("sampling", "tools")
SAMPLING_WITH_CONTEXT = ("sampling", "context")
ROOTS = ("roots", "")

# enough that two questions are never equal by chance; every state carries the fingerprints
FINGERPRINT_BYTES = 16


def fingerprint(question: JSONObject) -> str:
    """Return the digest of a question, 22 characters. If a question changes, its old answer no longer counts."""
    digest = hashlib.sha256(dumps_sorted(question).encode()).digest()
    return base64url(digest[:FINGERPRINT_BYTES])


def message_of(question: JSONObject) -> str:
    """Return the message that the user reads, or the method of a question that has none."""
    message: str = question.get("params", {}).get("message", question["method"])
    return message


def with_reason(question: JSONObject, reason: str) -> JSONObject:
    """Return a form whose message also says why the last answer is invalid. Any other question stays unchanged."""
    if not _is_form(question):
        return question
    params = question["params"]
    message = f"{params['message']} (Please answer again: {reason}.)"
    return {**question, "params": {**params, "message": message}}


def requested_part(question: JSONObject, response: JSONObject) -> JSONObject:
    """Return a response to a form without members that the form did not request. Any other response stays unchanged.

    Every later state carries the response, so these members would make each state longer.
    """
    content = response.get("content")
    if not _is_form(question) or "action" not in response or not isinstance(content, dict):
        return response
    fields = question["params"]["requestedSchema"]["properties"]
    requested = {name: value for name, value in content.items() if name in fields}
    return {"action": response["action"], "content": requested}


def _is_form(question: JSONObject) -> bool:
    return "requestedSchema" in question.get("params", {})


def missing_capabilities(questions: Iterable[JSONObject], declared: ClientCapabilities) -> dict[str, Any]:
    """Return the capabilities that these questions need and the client did not declare, as ClientCapabilities.

    "Servers MUST NOT send an inputRequests that the client has not declared support for in its capabilities."
    """
    missing: dict[str, Any] = {}
    for question in questions:
        needed = _needed_capability(question)
        if is_declared(declared, needed):
            continue
        name, member = needed
        members = missing.setdefault(name, {})
        if member:
            members[member] = {}
    # Forms alone are written as `{"elicitation": {}}`, as in the specification's example. A client that declares URLs
    # needs `{"form": {}}`, because it declares a member.
    needs_only_forms = missing.get("elicitation") == {"form": {}}
    if needs_only_forms and "elicitation" not in declared:
        missing["elicitation"] = {}
    return missing


def is_declared(declared: ClientCapabilities, capability: tuple[str, str]) -> bool:
    """Tell whether a client declares a capability, such as URLS."""
    name, member = capability
    if capability == FORMS:  # two ways declare it
        return shows_forms(declared)
    if member:
        return isinstance(value_at(declared, name, member), dict)
    return isinstance(declared.get(name), dict)


def _needed_capability(question: JSONObject) -> tuple[str, str]:
    params = question.get("params", {})
    if question["method"] == "roots/list":
        return ROOTS
    if question["method"] == "elicitation/create":
        return URLS if params.get("mode") == "url" else FORMS
    if "tools" in params or "toolChoice" in params:
        return SAMPLING_WITH_TOOLS
    if params.get("includeContext") in ("thisServer", "allServers"):
        return SAMPLING_WITH_CONTEXT
    return SAMPLING
