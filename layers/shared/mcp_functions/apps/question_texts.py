"""Questions as texts, for a model or a person whose client cannot show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.wire_types import JSONObject


def describe_request(request: JSONObject) -> str:
    """Return the text of a question: of a form with its fields, "Where to? (city: string; class: first | second)"."""
    params = request.get("params", {})
    if request["method"] == "roots/list":
        return "the client's roots"
    if request["method"] == "sampling/createMessage":
        return "a message of the client's model"
    if params.get("mode") == "url":
        return f"{params['message']} ({params['url']})"
    fields = params["requestedSchema"]["properties"]
    described = [f"{name}: {_describe_field(field)}" for name, field in fields.items()]
    return f"{params['message']} ({'; '.join(described)})"


def _describe_field(field: Mapping[str, Any]) -> str:
    """Return the choices that a field of a form offers, or its description, or else its type."""
    choices = field.get("enum") or [choice["const"] for choice in field.get("oneOf", ())]
    if choices:
        return " | ".join(str(choice) for choice in choices)
    return str(field.get("description") or field.get("type"))
