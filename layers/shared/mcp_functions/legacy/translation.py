"""Rewrites what a client of 2025 receives: results, errors and questions of 2026-07-28, in the client's revision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.legacy import explanations, responses
from mcp_functions.legacy.errors import RESOURCE_NOT_FOUND
from mcp_functions.legacy.revisions import supports
from mcp_functions.protocol.constants import LIST_METHODS, META_SERVER_INFO
from mcp_functions.protocol.errors import MissingRequiredClientCapability, ResourceNotFound
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.messages import value_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.legacy.call_ids import Call
    from mcp_functions.legacy.request import LegacyRequest
    from mcp_functions.legacy.runner import Outcome
    from mcp_functions.protocol.wire_types import InputRequestParams, Schema

# results have these since 2026-07-28
NEW_RESULT_MEMBERS = frozenset({"resultType", "ttlMs", "cacheScope"})


def legacy_response(request: LegacyRequest, call: Call, outcome: Outcome) -> dict[str, Any]:
    """Return the response to a call that has ended with this outcome."""
    error = outcome.error
    if not error:
        return responses.result_message(call.id, _result(call.method, outcome.result, request.revision))
    if error.get("code") == MissingRequiredClientCapability.code:
        return explanations.missing_capability(request, call, error["data"])
    # Other modern errors have the code of ResourceNotFound too, but only this one names the `uri`.
    is_not_found = error.get("code") == ResourceNotFound.code and value_at(error, "data", "uri") is not None
    if call.method == "resources/read" and is_not_found:
        error = {**error, "code": RESOURCE_NOT_FOUND}
    return responses.error_message(call.id, error)


def _result(method: str, modern: Mapping[str, Any], revision: str) -> dict[str, Any]:
    """Return the result of a request for a client of `revision`."""
    result = {name: value for name, value in modern.items() if name not in NEW_RESULT_MEMBERS}
    meta = {name: value for name, value in result.pop("_meta", {}).items() if name != META_SERVER_INFO}
    if method in LIST_METHODS:
        # the member of the result that has the entries, for example "tools"
        member = LIST_METHODS[method]
        result[member] = [_entry(entry, revision) for entry in result[member]]
    elif method == "tools/call":
        result = _tool_result(result, revision)
    elif method == "prompts/get":
        result["messages"] = [{**each, "content": _content(each["content"], revision)} for each in result["messages"]]
    if meta:
        result["_meta"] = meta
    return result


def _entry(modern: Mapping[str, Any], revision: str) -> dict[str, Any]:
    """Return a tool, prompt, resource or template as a list of `revision` describes it."""
    entry = _without_new(modern, revision)
    is_tool = "inputSchema" in entry
    if is_tool:
        # 2025-11-25, schema.ts, Tool: both schemas have `type: "object"`
        entry["inputSchema"] = {**entry["inputSchema"], "type": "object"}
        output = entry.pop("outputSchema", None)
        if output is not None and _allows_only_objects(output, output):
            entry["outputSchema"] = {**output, "type": "object"}
    # of a resource; the annotations of tools are the same in every revision
    elif "annotations" in entry:
        entry["annotations"] = _without_new(entry["annotations"], revision)
    if "arguments" in entry:  # of a prompt
        entry["arguments"] = [_without_new(argument, revision) for argument in entry["arguments"]]
    return entry


def _content(modern: Mapping[str, Any], revision: str) -> dict[str, Any]:
    """Return one block of content for a client of `revision`."""
    if modern["type"] == "resource_link" and not supports(revision, "resource_link"):
        return {"type": "text", "text": f"{modern['name']}: {modern['uri']}"}
    block = _without_new(modern, revision)
    if "annotations" in block:
        block["annotations"] = _without_new(block["annotations"], revision)
    return block


class NotInRevision(Exception):
    """The client's revision cannot express a question."""


def legacy_question(request: Mapping[str, Any], revision: str, elicitation_id: str) -> dict[str, Any]:
    """Return the method and params that ask a client.

    Raises:
        NotInRevision: the revision cannot express the question.
    """
    method = request["method"]
    if method == "roots/list":  # the same in every revision
        return dict(request)
    params = request["params"]
    if method == "sampling/createMessage":
        if "tools" in params and not supports(revision, "sampling.tools"):
            raise NotInRevision
        params = {**params, "messages": [_sampling_message(message, revision) for message in params["messages"]]}
    elif params.get("mode") != "url":
        params = _form_params(params, revision)
    elif supports(revision, "elicitation.url"):
        params = {**params, "elicitationId": elicitation_id}
    else:
        raise NotInRevision
    return {"method": method, "params": params}


def _without_new(members: Mapping[str, Any], revision: str) -> dict[str, Any]:
    """Return members without those that a later revision introduced."""
    return {name: value for name, value in members.items() if supports(revision, name)}


def _tool_result(result: dict[str, Any], revision: str) -> dict[str, Any]:
    """Return the result of a tool. Earlier revisions have no structured content, or only objects."""
    result["content"] = [_content(block, revision) for block in result["content"]]
    structured = result.get("structuredContent", {})
    if isinstance(structured, dict) and supports(revision, "structuredContent"):
        return result
    result.pop("structuredContent", None)
    # a result without any content gets the text {}
    if not result["content"] and structured is not None:
        result["content"] = [{"type": "text", "text": dumps(structured)}]
    return result


def _allows_only_objects(schema: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    """Return whether a schema, which is a part of the schema `root`, accepts objects only."""
    if "$ref" in schema:
        _path, _slash, name = schema["$ref"].rpartition("/")  # "#/$defs/Seat"
        definitions = root.get("$defs", {})
        return _allows_only_objects(definitions.get(name, {}), root)
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    if alternatives:
        return all(_allows_only_objects(alternative, root) for alternative in alternatives)
    return bool(schema.get("type") == "object")


def _form_params(params: InputRequestParams, revision: str) -> dict[str, Any]:
    schema = params["requestedSchema"].copy()
    if not supports(revision, "elicitation.oneOf"):
        schema["properties"] = {name: _form_field(field, revision) for name, field in schema["properties"].items()}
    form = {**params, "requestedSchema": schema}
    if not supports(revision, "elicitation.url"):
        form.pop("mode", None)
    return form


def _form_field(field: Schema, revision: str) -> Schema:
    """Return a field as 2025-06-18 has it: choices are `enum` and `enumNames`, and only booleans have a default."""
    if field["type"] == "array" and not supports(revision, "elicitation.multi"):
        raise NotInRevision
    legacy = field.copy()
    if field["type"] != "boolean":
        legacy.pop("default", None)
    choices = legacy.pop("oneOf", None)
    if choices:
        legacy["enum"] = [choice["const"] for choice in choices]
        legacy["enumNames"] = [choice["title"] for choice in choices]
    return legacy


def _sampling_message(message: Mapping[str, Any], revision: str) -> dict[str, Any]:
    """Return a message for a model; before 2025-11-25 a message has exactly one block."""
    blocks = message["content"]
    if isinstance(blocks, list) and not supports(revision, "sampling.blocks"):
        if len(blocks) != 1:
            raise NotInRevision
        blocks = blocks[0]
    return {**message, "content": blocks}
