"""Reads the questions of a server, as the client gets them.

    {"method": "elicitation/create", "params": {"mode": "form", "message": "Which seat?", "requestedSchema": {…}}}

The specification calls this JSON an InputRequest. It asks the user, the client's model, or the client for its roots.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.json_writer import base64url, dumps_sorted
from mcp_functions.protocol.messages import shows_forms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mcp_functions.protocol.wire_types import JSONObject

FINGERPRINT_BYTES = 16  # enough that two questions are never equal by chance; every state carries the fingerprints


def fingerprint(request: JSONObject) -> str:
    """Return the digest of a question, 22 characters: an answer counts only for the same fingerprint."""
    digest = hashlib.sha256(dumps_sorted(request).encode()).digest()
    return base64url(digest[:FINGERPRINT_BYTES])


def message_of(request: JSONObject) -> str:
    """Return the message that the user reads, or the request's method if it has none."""
    message: str = request.get("params", {}).get("message", request["method"])
    return message


def repeat_request(request: JSONObject, reason: str) -> JSONObject:
    """Return a question that tells the user why the last answer is invalid. Only a form has a message for the user."""
    params = request.get("params", {})
    if "requestedSchema" not in params:
        return request
    again = f"{params['message']} (Please answer again: {reason}.)"
    return {**request, "params": {**params, "message": again}}


def without_extra_fields(request: JSONObject, response: JSONObject) -> JSONObject:
    """Return the response to a form without fields that it did not request. Any other response stays unchanged.

    No round reads such fields, but the state of every later round would carry them.
    """
    params = request.get("params", {})
    content = response.get("content")
    if "requestedSchema" not in params or "action" not in response or not isinstance(content, dict):
        return response
    fields = params["requestedSchema"]["properties"]
    requested = {name: value for name, value in content.items() if name in fields}
    return {"action": response["action"], "content": requested}


def missing_capabilities(requests: Iterable[JSONObject], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the capabilities that these requests need and the client did not declare, as ClientCapabilities.

    "Servers MUST NOT send an inputRequests that the client has not declared support for in its capabilities."
    """
    missing: dict[str, Any] = {}
    for request in requests:
        capability, member = _needed_capability(request)
        if not is_declared(declared, capability, member):
            members = missing.setdefault(capability, {})
            if member:
                members[member] = {}
    # A client that declares no elicitation may declare forms by `{}`. The specification's example of this error has it.
    if missing.get("elicitation") == {"form": {}} and "elicitation" not in declared:
        missing["elicitation"] = {}
    return missing


def is_declared(declared: Mapping[str, Any], capability: str, member: str = "") -> bool:
    """Tell whether a client declares a capability, and this member of it, if one is given."""
    if member == "form":
        return shows_forms(declared)
    members = declared.get(capability)
    if not isinstance(members, dict):
        return False
    return not member or isinstance(members.get(member), dict)


def _needed_capability(request: JSONObject) -> tuple[str, str]:
    """Return the capability that a request needs, and the member that must be in it; "" if any value is enough."""
    params = request.get("params", {})
    if request["method"] == "roots/list":
        return "roots", ""
    if request["method"] == "elicitation/create":
        return "elicitation", "url" if params.get("mode") == "url" else "form"
    if "tools" in params or "toolChoice" in params:
        return "sampling", "tools"
    if params.get("includeContext") in ("thisServer", "allServers"):
        return "sampling", "context"
    return "sampling", ""
