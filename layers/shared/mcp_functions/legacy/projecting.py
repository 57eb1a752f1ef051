"""What 2026-07-28 says, told as far as an earlier revision knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.legacy.revisions import knows
from mcp_functions.protocol.constants import LISTS, META_SERVER_INFO
from mcp_functions.protocol.json_writer import dumps

if TYPE_CHECKING:
    from collections.abc import Mapping

NEW = frozenset({"resultType", "ttlMs", "cacheScope"})  # that 2026-07-28 says of results
DATED = ("title", "icons", "_meta", "outputSchema")  # that an entry of a list may not have known
ADVERTISED = ("tools", "prompts", "resources", "completions", "logging")


def capabilities(discovered: Mapping[str, Any]) -> dict[str, Any]:
    """Tell what `server/discover` says that is offered; extensions and what only 2026-07-28 has are not in there."""
    offered = discovered["capabilities"]
    return {name: offered[name] for name in ADVERTISED if name in offered}


def result(method: str, told: Mapping[str, Any], revision: str) -> dict[str, Any]:
    """Tell the result of a request."""
    kept = {name: value for name, value in told.items() if name not in NEW}
    meta = {name: value for name, value in kept.pop("_meta", {}).items() if name != META_SERVER_INFO}
    if method in LISTS:
        listed = LISTS[method]
        kept[listed] = [entry(each, revision) for each in kept[listed]]
    elif method == "tools/call":
        kept = _called(kept, revision)
    elif method == "prompts/get":
        kept["messages"] = [{**each, "content": content(each["content"], revision)} for each in kept["messages"]]
    return {**kept, **({"_meta": meta} if meta else {})}


def entry(told: Mapping[str, Any], revision: str) -> dict[str, Any]:
    """Tell a tool, prompt, resource or template, as a list names it."""
    kept = {name: value for name, value in told.items() if name not in DATED or knows(revision, name)}
    # before 2026-07-28 both schemas are of objects: `type: "object"`
    output = kept.pop("outputSchema", None)
    if output is not None and _is_of_objects(output, output):
        kept["outputSchema"] = {**output, "type": "object"}
    if "inputSchema" in kept:
        kept["inputSchema"] = {**kept["inputSchema"], "type": "object"}
    if "annotations" in kept and "inputSchema" not in kept:
        kept["annotations"] = _annotations(kept["annotations"], revision)
    if "arguments" in kept and not knows(revision, "title"):
        kept["arguments"] = [{n: v for n, v in each.items() if n != "title"} for each in kept["arguments"]]
    return kept


def content(told: Mapping[str, Any], revision: str) -> dict[str, Any]:
    """Tell one block of content."""
    if told["type"] == "resource_link" and not knows(revision, "resource_link"):
        return {"type": "text", "text": f"{told['name']}: {told['uri']}"}
    dated = ("_meta", "title", "icons")
    kept = {name: value for name, value in told.items() if name not in dated or knows(revision, name)}
    if "annotations" in kept:
        kept["annotations"] = _annotations(kept["annotations"], revision)
    return kept


def question(asked: Mapping[str, Any], revision: str, id_: str) -> dict[str, Any] | None:
    """Tell what is asked of a client, as method and params; None if the revision has no words for it.

    Args:
        asked: one of `inputRequests`.
        revision: of the session.
        id_: for a page that the user opens; unique.

    """
    params = dict(asked.get("params", {}))
    match asked["method"]:
        case "elicitation/create" if params.get("mode") == "url":
            if not knows(revision, "elicitation.url"):
                return None
            params["elicitationId"] = id_
        case "elicitation/create":
            form = _form(params["requestedSchema"], revision)
            if form is None:
                return None
            params["requestedSchema"] = form
            if not knows(revision, "elicitation.url"):
                params.pop("mode", None)
        case "sampling/createMessage":
            messages = [_said(message, revision) for message in params["messages"]]
            if None in messages or ("tools" in params and not knows(revision, "sampling.tools")):
                return None
            params["messages"] = messages
    return {"method": asked["method"], **({"params": params} if params else {})}


def _called(told: dict[str, Any], revision: str) -> dict[str, Any]:
    told["content"] = [content(block, revision) for block in told["content"]]
    structured = told.get("structuredContent", {})
    if isinstance(structured, dict) and knows(revision, "structuredContent"):
        return told
    told.pop("structuredContent", None)
    if not told["content"] and structured is not None:
        told["content"] = [{"type": "text", "text": dumps(structured)}]
    return told


def _is_of_objects(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> bool:
    """Say whether nothing but an object fits a part of a whole schema."""
    if "$ref" in schema:
        return _is_of_objects(whole.get("$defs", {}).get(schema["$ref"].rpartition("/")[2], {}), whole)
    if members := schema.get("anyOf") or schema.get("oneOf"):
        return all(_is_of_objects(member, whole) for member in members)
    return bool(schema.get("type") == "object")


def _annotations(told: Mapping[str, Any], revision: str) -> dict[str, Any]:
    return {name: value for name, value in told.items() if name != "lastModified" or knows(revision, name)}


def _form(schema: Mapping[str, Any], revision: str) -> dict[str, Any] | None:
    if knows(revision, "elicitation.oneOf"):
        return dict(schema)
    fields = {name: _field(field, revision) for name, field in schema["properties"].items()}
    if None in fields.values():
        return None
    return {**schema, "properties": fields}


def _field(field: Mapping[str, Any], revision: str) -> dict[str, Any] | None:
    """Write a field as 2025-06-18 has it: choices are `enum` and `enumNames`, and only booleans have a default."""
    if field["type"] == "array" and not knows(revision, "elicitation.multi"):
        return None
    kept = {name: value for name, value in field.items() if name != "default" or field["type"] == "boolean"}
    if choices := kept.pop("oneOf", None):
        kept["enum"] = [choice["const"] for choice in choices]
        kept["enumNames"] = [choice["title"] for choice in choices]
    return kept


def _said(message: Mapping[str, Any], revision: str) -> dict[str, Any] | None:
    """Write a message for a model; before 2025-11-25 it has one block."""
    blocks = message["content"]
    if isinstance(blocks, list) and not knows(revision, "sampling.blocks"):
        if len(blocks) != 1:
            return None
        blocks = blocks[0]
    return {**message, "content": blocks}
