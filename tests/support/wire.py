"""Messages of the wire for tests: requests as a client writes them, and the oracle for responses.

The official types judge every message (`check`): it has the shape that the specification defines for its method, and
no unknown members. This module imports nothing of the package, so it cannot repeat a mistake of the package.
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
REFUSALS = (AssertionError, KeyError, ValidationError, SchemaError)  # what `check` may raise
FORMS: dict[str, Any] = {"elicitation": {}}  # what a client declares that can show forms, and nothing else
TASKS = "io.modelcontextprotocol/tasks"
WITH_TASKS: dict[str, Any] = {"elicitation": {}, "extensions": {TASKS: {}}}
OF_TASKS = {"tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri", **OF_TASKS}

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
WHOLE = {-32020, -32021, -32022}  # these types describe the whole message, the others its `error`


def check(response_body: dict[str, Any], method: str) -> None:
    """Check one JSON-RPC message that a server sent in answer to `method`.

    Args:
        response_body: a response, or a notification that went before it.
        method: of the request.

    Raises:
        One of REFUSALS: it is not what the specification's types allow.

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
    """Return the one JSON-RPC response in an HTTP response, after checking it and all that goes with it."""
    *before, last = messages(response)
    for notification in before:
        assert "method" in notification
        check(notification, method)
    check(last, method)
    return last


def messages(response: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Take the JSON-RPC messages out of an HTTP response, be it JSON or an event stream."""
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
    """Write a request. Options: `id` (1), `capabilities` (forms), `version`, `meta` (more of `_meta`)."""
    meta = {
        PREFIX + "protocolVersion": options.get("version", VERSION),
        PREFIX + "clientCapabilities": options.get("capabilities", FORMS),
        **options.get("meta", {}),
    }
    params = {**(params or {}), "_meta": meta}
    return {"jsonrpc": "2.0", "id": options.get("id", 1), "method": method, "params": params}


def headers(sent: Mapping[str, Any]) -> dict[str, str]:
    """Write the headers that belong to a request, as API Gateway passes them on: names in lower case."""
    params = sent.get("params", {})
    named = params.get(NAMED.get(sent["method"], ""))
    return {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": params.get("_meta", {}).get(PREFIX + "protocolVersion", VERSION),
        "mcp-method": sent["method"],
        **({"mcp-name": header(named)} if isinstance(named, str) else {}),
    }


def header(value: str) -> str:
    """Write a header value: in base64 where it could not stand as it is."""
    if value.isascii() and value.isprintable() and value == value.strip():
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def event(sent: Mapping[str, Any] | str, **options: Any) -> dict[str, Any]:  # noqa: ANN401
    """Write an HTTP API event (2.0). Options: `headers` (more; None removes), `http_method`, `context`, `base64`."""
    known = headers(sent) if not isinstance(sent, str) else {}
    body = sent if isinstance(sent, str) else json.dumps(sent)
    context = {"http": {"method": options.get("http_method", "POST"), "path": "/mcp", "sourceIp": "192.0.2.1"}}
    encoded = base64.b64encode(body.encode()).decode() if options.get("base64") else body
    return {
        "version": "2.0",
        "routeKey": "ANY /mcp",
        "rawPath": "/mcp",
        "rawQueryString": "",
        "headers": {k: v for k, v in {**known, **options.get("headers", {})}.items() if v is not None},
        "requestContext": {**context, **options.get("context", {})},
        "body": encoded,
        "isBase64Encoded": bool(options.get("base64")),
    }


class Context:
    """Lambda's context object, as far as anything here looks at it."""

    def __init__(self, function_name: str = "local_test", remaining_ms: int = 29_000) -> None:
        self.function_name = function_name
        self.aws_request_id = "00000000-0000-0000-0000-000000000000"
        self.invoked_function_arn = f"arn:aws:lambda:eu-west-1:111122223333:function:{function_name}"
        self.memory_limit_in_mb = 512
        self._remaining_ms = remaining_ms

    def get_remaining_time_in_millis(self) -> int:
        return self._remaining_ms


class Boxes:
    """A seal without cryptography, for tests of what is above it: the token is a claim check, the payload stays."""

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
    if method in OF_TASKS or result.get("resultType") == "task":
        _check_task_result(result, method)
        return
    written = _as_known(methods.SERVER_RESULTS[method, VERSION], result)
    present = {key: value for key, value in result.items() if key != "structuredContent" or value is not None}
    assert written == present, "it holds what the specification's types do not know"
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


DETAILS = {"input_required": {"inputRequests"}, "completed": {"result"}, "failed": {"error"}}


def _check_task_result(result: dict[str, Any], method: str) -> None:
    """Check what a request about a task, or one that became a task, is answered with (SEP-2663)."""
    told = {key: value for key, value in result.items() if key not in ("resultType", "_meta")}
    assert result["_meta"][PREFIX + "serverInfo"].keys() >= {"name", "version"}
    if result["resultType"] == "task":
        assert method == "tools/call"
        Task.model_validate_json(json.dumps(told), strict=True)
        return
    assert result["resultType"] == "complete"
    if method != "tasks/get":
        assert not told, "tasks/update and tasks/cancel are acknowledged with an empty result"
        return
    details = {key: told.pop(key) for key in ("inputRequests", "result", "error") if key in told}
    task = Task.model_validate_json(json.dumps(told), strict=True)
    assert details.keys() == DETAILS.get(task.status, set())
    if task.status == "completed":
        _check_result(details["result"], "tools/call")
    if task.status == "failed":
        _check_error({"jsonrpc": "2.0", "error": details["error"]})
    if task.status == "input_required":
        assert details["inputRequests"]
        _check_requests(details["inputRequests"])


def _as_known(type_: Any, value: object) -> object:  # noqa: ANN401 - a type or a union of types
    """Return the value as the official type serializes it; a difference means that the value is wrong."""
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
        _as_known(types.InputRequest, request)
        assert request.keys() <= {"method", "params"}
        for schema in request.get("params", {}).get("requestedSchema", {}).get("properties", {}).values():
            known = _as_known(types.PrimitiveSchemaDefinition, schema)
            assert known == schema, "a form holds what the restricted schema does not know"


def _check_error(body: dict[str, Any]) -> None:
    assert body.keys() <= {"jsonrpc", "id", "error"}
    if "id" in body:
        _check_id(body["id"])
    error = body["error"]
    assert error.keys() <= {"code", "message", "data"}
    assert "\n" not in error["message"]
    shape = ERRORS[error["code"]]
    shape.model_validate(body if error["code"] in WHOLE else error, by_name=False)


def _check_id(id_: object) -> None:
    assert type(id_) in (str, int)  # never null, never a fraction
