"""Rewrites what a client of 2025 receives: results, errors and questions of 2026-07-28, in the client's revision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from mcp_functions.legacy import explanations, responses
from mcp_functions.legacy.errors import RESOURCE_NOT_FOUND
from mcp_functions.legacy.revisions import supports
from mcp_functions.protocol.constants import LIST_METHODS, META_SERVER_INFO
from mcp_functions.protocol.errors import MissingRequiredClientCapability, ResourceNotFound
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.messages import value_at

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from mcp_functions.legacy.call_ids import LegacyCall
    from mcp_functions.legacy.outcomes import RoundOutcome
    from mcp_functions.legacy.request import LegacyRequest
    from mcp_functions.protocol.wire_types import (
        ContentBlock,
        InputRequest,
        InputRequestParams,
        JSONRPCMessage,
        JSONValue,
        ListEntry,
        ResultObject,
        SamplingMessage,
        Schema,
    )

T = TypeVar("T", bound="Mapping[str, Any]")  # the type of an object, for example `ListEntry`

NEW_RESULT_MEMBERS = frozenset({"resultType", "ttlMs", "cacheScope"})  # since 2026-07-28


def legacy_response(request: LegacyRequest, call: LegacyCall, outcome: RoundOutcome) -> JSONRPCMessage:
    """Return the response to a call that has ended with this outcome."""
    error = outcome.error
    if not error:
        return responses.result_message(call.id, _result(call.method, outcome.result, request.revision))
    if error.get("code") == MissingRequiredClientCapability.code:
        return explanations.missing_capability(request, call, error["data"])
    # Other errors have the code of ResourceNotFound too, but only this one names the `uri`.
    is_not_found = error.get("code") == ResourceNotFound.code and value_at(error, "data", "uri") is not None
    if call.method == "resources/read" and is_not_found:
        error = {**error, "code": RESOURCE_NOT_FOUND}
    return responses.error_message(call.id, error)


def _result(method: str, current: ResultObject, revision: str) -> ResultObject:
    """Return the result of a request for a client of `revision`."""
    result = _without(NEW_RESULT_MEMBERS, current)
    meta = _without({META_SERVER_INFO}, result.pop("_meta", {}))
    if method in LIST_METHODS:
        member = LIST_METHODS[method]  # for example "tools"
        result[member] = [_entry(entry, revision) for entry in result[member]]
    elif method == "tools/call":
        result = _tool_result(result, revision)
    elif method == "prompts/get":
        result["messages"] = [{**each, "content": _content(each["content"], revision)} for each in result["messages"]]
    if meta:
        result["_meta"] = meta
    return result


def _entry(current: ListEntry, revision: str) -> ListEntry:
    """Return a tool, prompt, resource or template as a list of `revision` describes it."""
    entry = _without_new(current, revision)
    if "inputSchema" in entry:  # 2025-11-25, schema.ts, Tool: both schemas have `type: "object"`
        entry["inputSchema"] = {**entry["inputSchema"], "type": "object"}
        output = entry.pop("outputSchema", None)
        if output is not None and _allows_only_objects(output, output):
            entry["outputSchema"] = {**output, "type": "object"}
    elif "annotations" in entry:  # of a resource; those of tools are the same in every revision
        entry["annotations"] = _without_new(entry["annotations"], revision)
    if "arguments" in entry:  # of a prompt
        entry["arguments"] = [_without_new(argument, revision) for argument in entry["arguments"]]
    return entry


def _content(current: ContentBlock, revision: str) -> ContentBlock:
    """Return one block of content for a client of `revision`."""
    if current["type"] == "resource_link" and not supports(revision, "resource_link"):
        return {"type": "text", "text": f"{current['name']}: {current['uri']}"}
    block = _without_new(current, revision)
    if "annotations" in block:
        block["annotations"] = _without_new(block["annotations"], revision)
    return block


class NotInRevision(Exception):
    """The client's revision cannot express a question."""


def legacy_question(question: InputRequest, revision: str, elicitation_id: str) -> InputRequest:
    """Return the method and params that ask a client; NotInRevision if its revision cannot express the question."""
    method = question["method"]
    if method == "roots/list":  # the same in every revision
        return question
    params = question["params"]
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


def _without(names: Collection[str], members: T) -> T:
    """Return the members of an object without those of these names."""
    return cast("T", {name: value for name, value in members.items() if name not in names})


def _without_new(members: T, revision: str) -> T:
    """Return the members of an object without those that a later revision introduced."""
    return cast("T", {name: value for name, value in members.items() if supports(revision, name)})


def _tool_result(result: ResultObject, revision: str) -> ResultObject:
    """Return the result of a tool. Earlier revisions have no structured content, or only objects."""
    result["content"] = [_content(block, revision) for block in result["content"]]
    structured: JSONValue = result.get("structuredContent", {})
    if isinstance(structured, dict) and supports(revision, "structuredContent"):
        return result
    result.pop("structuredContent", None)
    if not result["content"] and structured is not None:  # {} for a result without content
        result["content"] = [{"type": "text", "text": dumps(structured)}]
    return result


def _allows_only_objects(schema: Schema, root: Schema) -> bool:
    """Return whether a schema, which is a part of the schema `root`, accepts objects only."""
    if "$ref" in schema:
        _path, _slash, name = schema["$ref"].rpartition("/")  # "#/$defs/Seat"
        definitions = root.get("$defs", {})
        return _allows_only_objects(definitions.get(name, {}), root)
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    if alternatives:
        return all(_allows_only_objects(alternative, root) for alternative in alternatives)
    return bool(schema.get("type") == "object")


def _form_params(params: InputRequestParams, revision: str) -> InputRequestParams:
    schema = params["requestedSchema"].copy()
    if not supports(revision, "elicitation.oneOf"):
        schema["properties"] = {name: _form_field(field, revision) for name, field in schema["properties"].items()}
    form: InputRequestParams = {**params, "requestedSchema": schema}
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


def _sampling_message(message: SamplingMessage, revision: str) -> SamplingMessage:
    """Return a message for a model; before 2025-11-25 a message has exactly one block."""
    blocks = message["content"]
    if isinstance(blocks, list) and not supports(revision, "sampling.blocks"):
        if len(blocks) != 1:
            raise NotInRevision
        blocks = blocks[0]
    return {**message, "content": blocks}
