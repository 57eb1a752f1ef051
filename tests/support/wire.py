"""MCP messages for tests: requests as a client writes them, and a check of every response.

    message -> event          a JSON-RPC request, and API Gateway's event for it
    read                      the JSON-RPC response in an HTTP response, after `check`
    check                     compares a message with the types of the official package `mcp_types`

This module imports nothing of the package under test, so it cannot repeat a mistake of that package.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from jsonschema import Draft202012Validator, SchemaError
from mcp_types import _v2026_07_28 as types
from mcp_types import methods
from pydantic import AwareDatetime, BaseModel, Field, PositiveInt, TypeAdapter, ValidationError

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
CHECK_ERRORS = (AssertionError, KeyError, ValidationError, SchemaError)  # what `check` may raise
FORM_CAPABILITIES: dict[str, Any] = {
    "elicitation": {}
}  # the capabilities of a client that can show forms, and nothing else
TASKS = "io.modelcontextprotocol/tasks"
TASK_CAPABILITIES: dict[str, Any] = {"elicitation": {}, "extensions": {TASKS: {}}}
# method -> the parameter that the header Mcp-Name repeats
TASK_METHODS = {"tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}
# of SEP-2640: method -> the member of its result
SKILL_METHODS = {"skills/list": "skills", "skills/get": "skill", "resources/directory/read": "resources"}
NAME_PARAMETERS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri", **TASK_METHODS}

ERRORS: dict[int, Any] = {
    -32700: types.ParseError,
    -32600: types.InvalidRequestError,
    -32601: types.MethodNotFoundError,
    -32602: types.InvalidParamsError,
    -32603: types.InternalError,
    -32020: types.HeaderMismatchError,
    -32021: types.MissingRequiredClientCapabilityError,
    -32022: types.UnsupportedProtocolVersionError,
}
CODES_WITH_MESSAGE_TYPES = {
    -32020,
    -32021,
    -32022,
}  # the types of these codes describe the whole message, the others its `error`


def check(response_body: dict[str, Any], method: str) -> None:
    """Check one JSON-RPC message of a server.

    Args:
        response_body: a response, or a notification before it.
        method: the method of the request.

    Raises:
        One of REFUSALS: the specification's types do not allow the message.
    """
    assert response_body["jsonrpc"] == "2.0"
    if "method" in response_body:
        assert "id" not in response_body
        methods.parse_server_notification(response_body["method"], VERSION, response_body["params"])
    elif "error" in response_body:
        _check_error(response_body)
    else:
        assert response_body.keys() == {"jsonrpc", "id", "result"}
        _check_id(response_body["id"])
        _check_result(response_body["result"], method)


def read(response: Mapping[str, Any], method: str) -> dict[str, Any]:
    """Return the JSON-RPC response in an HTTP response, after a check of all its messages."""
    *before, last = messages(response)
    for notification in before:
        assert "method" in notification
        check(notification, method)
    check(last, method)
    return last


def messages(response: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the JSON-RPC messages of an HTTP response, which is JSON or an event stream."""
    if response["headers"]["content-type"] == "application/json":
        return [json.loads(response["body"])]
    assert response["headers"]["content-type"] == "text/event-stream"
    lines = response["body"].split("\n")
    return [json.loads(line.removeprefix("data:")) for line in lines if line.startswith("data:")]


@dataclass(frozen=True)
class Reply:
    """A JSON-RPC response that `read` has checked."""

    status: int
    body: dict[str, Any]

    @classmethod
    def of(cls, response: Mapping[str, Any], method: str) -> Reply:
        return cls(response["statusCode"], read(response, method))

    @property
    def error(self) -> dict[str, Any] | None:
        return self.body.get("error")

    @property
    def code(self) -> int:
        """The code of the error."""
        return int(self.body["error"]["code"])

    @property
    def result(self) -> dict[str, Any]:
        result: dict[str, Any] = self.body["result"]
        return result

    @property
    def state(self) -> str:
        return str(self.result["requestState"])

    @property
    def questions(self) -> list[str]:
        return sorted(self.result["inputRequests"])

    @property
    def text(self) -> str:
        return str(self.result["content"][0]["text"])


def message(method: str, params: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a JSON-RPC request.

    Options: `id` (default 1), `capabilities` (FORMS), `version` (VERSION), and `meta` (more members of `_meta`).
    """
    meta = {
        PREFIX + "protocolVersion": options.get("version", VERSION),
        PREFIX + "clientCapabilities": options.get("capabilities", FORM_CAPABILITIES),
        **options.get("meta", {}),
    }
    params = {**(params or {}), "_meta": meta}
    return {"jsonrpc": "2.0", "id": options.get("id", 1), "method": method, "params": params}


def headers(sent: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of a request, as API Gateway passes them on: names in lower case."""
    params = sent.get("params", {})
    pairs = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": params.get("_meta", {}).get(PREFIX + "protocolVersion", VERSION),
        "mcp-method": sent["method"],
    }
    name = params.get(NAME_PARAMETERS.get(sent["method"], ""))
    if isinstance(name, str):
        pairs["mcp-name"] = header(name)
    return pairs


def header(value: str) -> str:
    """Return a header's value: in base64 if a header cannot contain the text."""
    if value.isascii() and value.isprintable() and value == value.strip():
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def event(sent: Mapping[str, Any] | str, **options: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return an event of an HTTP API (payload 2.0) with a message, or with any text as its body.

    Options: `headers` (more headers; None removes one), `http_method`, `context` (members of requestContext), and
    `base64` (whether the body is encoded).
    """
    body = sent if isinstance(sent, str) else json.dumps(sent)
    if options.get("base64"):
        body = base64.b64encode(body.encode()).decode()
    own_headers = {} if isinstance(sent, str) else headers(sent)
    changed_headers = {**own_headers, **options.get("headers", {})}
    context = {"http": {"method": options.get("http_method", "POST"), "path": "/mcp", "sourceIp": "192.0.2.1"}}
    return {
        "version": "2.0",
        "routeKey": "ANY /mcp",
        "rawPath": "/mcp",
        "rawQueryString": "",
        "headers": {name: value for name, value in changed_headers.items() if value is not None},
        "requestContext": {**context, **options.get("context", {})},
        "body": body,
        "isBase64Encoded": bool(options.get("base64")),
    }


class Context:
    """Lambda's context object, with the members that the toolkit reads."""

    def __init__(self, function_name: str = "local_test", remaining_ms: int = 29_000) -> None:
        self.function_name = function_name
        self.aws_request_id = "00000000-0000-0000-0000-000000000000"
        self.invoked_function_arn = f"arn:aws:lambda:eu-west-1:111122223333:function:{function_name}"
        self.memory_limit_in_mb = 512
        self._remaining_ms = remaining_ms

    def get_remaining_time_in_millis(self) -> int:
        return self._remaining_ms


class PlainCodec:
    """A seal without cryptography: it keeps the payload, and the token is only its number ("box.7")."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []

    def seal(self, payload: bytes, /) -> str:
        self.payloads.append(payload)
        return f"box.{len(self.payloads)}"

    def unseal(self, token: str, /) -> bytes:
        name, _dot, number = token.partition(".")
        assert name == "box"
        return self.payloads[int(number) - 1]


def _check_result(result: dict[str, Any], method: str) -> None:
    if method in TASK_METHODS or result.get("resultType") == "task":
        _check_task_result(result, method)
        return
    if method in SKILL_METHODS:
        cached = set() if method == "resources/directory/read" else {"ttlMs", "cacheScope"}
        assert result.keys() - {"nextCursor"} == {SKILL_METHODS[method], "resultType", "_meta", *cached}
        for resource in result.get("resources", ()):
            _through_official_type(types.Resource, resource)
        return
    known = _through_official_type(methods.SERVER_RESULTS[method, VERSION], result)
    present = dict(result)
    if present.get("structuredContent", "") is None:
        del present["structuredContent"]  # `_through_official_type` leaves out members that are None
    assert known == present, "it has members that the specification's types do not know"
    assert result["_meta"][PREFIX + "serverInfo"].keys() >= {"name", "version"}
    match result["resultType"]:
        case "input_required":
            _check_input_required(result, method)
        case "complete":
            assert "inputRequests" not in result
            assert "requestState" not in result
        case other:
            raise AssertionError(other)
    if method == "tools/call" and result["resultType"] == "complete":
        assert isinstance(result["content"], list)
    for tool in result.get("tools", []):
        for schema in {"inputSchema", "outputSchema"} & tool.keys():
            Draft202012Validator.check_schema(tool[schema])


class Task(BaseModel, extra="forbid"):
    """A task as the extension's schema defines it; the official packages have no types for it."""

    taskId: str = Field(pattern=r"^[!-~]+$")  # noqa: N815 - the wire's names, as below
    status: Literal["working", "input_required", "completed", "failed", "cancelled"]
    statusMessage: str | None = None  # noqa: N815
    createdAt: AwareDatetime  # noqa: N815
    lastUpdatedAt: AwareDatetime  # noqa: N815
    ttlMs: PositiveInt | None  # noqa: N815
    pollIntervalMs: PositiveInt | None = None  # noqa: N815


# status of a task -> the members of tasks/get beside those of `Task`
MEMBERS_OF_STATUS = {"input_required": {"inputRequests"}, "completed": {"result"}, "failed": {"error"}}


def _check_task_result(result: dict[str, Any], method: str) -> None:
    """Check the result of a tasks/ method, or of a call that became a task (SEP-2663)."""
    members = {key: value for key, value in result.items() if key not in ("resultType", "_meta")}
    assert result["_meta"][PREFIX + "serverInfo"].keys() >= {"name", "version"}
    if result["resultType"] == "task":
        assert method == "tools/call"
        Task.model_validate_json(json.dumps(members), strict=True)
        return
    assert result["resultType"] == "complete"
    if method != "tasks/get":
        assert not members, "the result of tasks/update and tasks/cancel is empty"
        return
    details = {key: members.pop(key) for key in ("inputRequests", "result", "error") if key in members}
    task = Task.model_validate_json(json.dumps(members), strict=True)
    assert details.keys() == MEMBERS_OF_STATUS.get(task.status, set())
    if task.status == "completed":
        _check_result(details["result"], "tools/call")
    if task.status == "failed":
        _check_error({"jsonrpc": "2.0", "error": details["error"]})
    if task.status == "input_required":
        assert details["inputRequests"]
        _check_requests(details["inputRequests"])


def _through_official_type(type_: Any, value: object) -> object:  # noqa: ANN401 - a type or a union of types
    """Return the value as the official type writes it: without unknown members, and without those that are None."""
    adapter = _adapter(type_)
    known = adapter.validate_python(value, by_name=False)
    return adapter.dump_python(known, by_alias=True, mode="json", exclude_unset=True, exclude_none=True)


@cache
def _adapter(type_: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - a type or a union of types
    return TypeAdapter(type_)


def _check_input_required(result: dict[str, Any], method: str) -> None:
    assert method in methods.INPUT_REQUIRED_METHODS
    assert "ttlMs" not in result
    assert "cacheScope" not in result
    assert result.get("inputRequests") or "requestState" in result
    _check_requests(result.get("inputRequests", {}))


def _check_requests(requests: dict[str, Any]) -> None:
    for request in requests.values():
        _through_official_type(types.InputRequest, request)
        assert request.keys() <= {"method", "params"}
        for schema in request.get("params", {}).get("requestedSchema", {}).get("properties", {}).values():
            known = _through_official_type(types.PrimitiveSchemaDefinition, schema)
            assert known == schema, "a form has a keyword that the restricted schema does not know"


def _check_error(body: dict[str, Any]) -> None:
    assert body.keys() <= {"jsonrpc", "id", "error"}
    if "id" in body:
        _check_id(body["id"])
    error = body["error"]
    assert error.keys() <= {"code", "message", "data"}
    assert "\n" not in error["message"]
    shape = ERRORS[error["code"]]
    shape.model_validate(body if error["code"] in CODES_WITH_MESSAGE_TYPES else error, by_name=False)


def _check_id(id_: object) -> None:
    assert type(id_) in (str, int)  # never null, never a fraction
