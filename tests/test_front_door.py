"""The endpoint answers the lists, and forwards each call to the function that the catalog names.

Only Lambda's Invoke API is a fake, which records the calls. No `from __future__ import annotations` here, because most
authors' modules have none.
"""

import io
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import pytest
from botocore import exceptions
from botocore.exceptions import ClientError

from mcp_functions import prompt, resource, serve_catalog, tool
from mcp_functions.annotated import Header
from mcp_functions.assembly import assemble
from mcp_functions.front_door import FrontDoor
from mcp_functions.handlers import catalog
from mcp_functions.http.forwarding import lambda_client
from mcp_functions.settings import Settings
from tests.support import wire
from tests.support.dispatching import make_parts
from tests.support.endpoints import make_function
from tests.support.settings import make_settings

SETTINGS = make_settings(stack="shop", auth_mode="none")


@tool
def add(a: int, region: Annotated[str, Header("Region")] = "eu") -> str:
    return f"{region} {a + 1}"


@prompt
def brief(topic: str) -> str:
    return topic


@brief.complete("topic")
def _topics(value: str, _arguments: Mapping[str, str]) -> list[str]:
    return [value + "!"]


@resource("notes://{owner}")
def note(owner: str) -> str:
    return owner


CATALOG = catalog.build_project({"add": [add], "b": [brief], "n": [note]})
SERVER = assemble(make_parts((add, brief, note), SETTINGS, "a", None))


class Lambda:
    """The Invoke API: runs a function in this process, or raises a given error."""

    def __init__(self) -> None:
        self.invoked: list[tuple[str, dict[str, Any]]] = []
        self.made = 0
        self.failure: Exception | None = None
        self.answer: dict[str, Any] | None = None

    def __call__(self) -> "Lambda":
        self.made += 1
        return self

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803 - boto3's names
        if self.failure:
            raise self.failure
        event = json.loads(Payload)
        self.invoked.append((FunctionName, event))
        if self.answer is not None:
            return self.answer
        inner = make_function(SETTINGS, SERVER.answer)
        return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(inner(event, wire.Context())).encode())}


@pytest.fixture
def aws() -> Lambda:
    return Lambda()


def send(aws: Lambda, event: dict[str, Any], settings: Settings = SETTINGS) -> dict[str, Any]:
    door = FrontDoor({**CATALOG, "endpoint": {"instructions": "Be nice"}}, settings, aws)
    return make_function(settings, door.answer)(event, wire.Context("shop_mcp"))


def call(aws: Lambda, method: str, params: dict[str, Any], **options: Any) -> dict[str, Any]:  # noqa: ANN401
    return wire.read(send(aws, wire.event(wire.message(method, params), **options)), method)


CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("tools/call", {"name": "add", "arguments": {"a": 1}}, "shop_add"),
    ("prompts/get", {"name": "brief", "arguments": {"topic": "x"}}, "shop_b"),
    ("resources/read", {"uri": "notes://ann"}, "shop_n"),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "brief"}, "argument": {"name": "topic", "value": "x"}},
        "shop_b",
    ),
]


@pytest.mark.parametrize(("method", "params", "name"), CALLS)
def test_a_call_goes_to_the_function_that_the_catalog_names(
    aws: Lambda, method: str, params: dict[str, Any], name: str
) -> None:
    assert "result" in call(aws, method, params)
    assert [function for function, _event in aws.invoked] == [name]


@pytest.mark.parametrize(("method", "params", "name"), CALLS)
def test_event_and_response_are_passed_on_without_the_token_of_the_caller(
    aws: Lambda, method: str, params: dict[str, Any], name: str
) -> None:
    event = wire.event(wire.message(method, params, meta={"com.example/ż": "żółw"}), headers={"x-more": "1"})
    response = send(aws, {**event, "headers": {**event["headers"], "Authorization": "Bearer hunter2"}})
    assert aws.invoked == [(name, event)]
    inner = make_function(SETTINGS, SERVER.answer)
    assert response == inner(event, wire.Context())


def test_half_a_surrogate_pair_in_a_header_is_passed_on_too(aws: Lambda) -> None:
    event = wire.event(wire.message(*CALLS[0][:2]), headers={"x-more": "\ud800"})
    assert send(aws, event)["statusCode"] == 200
    assert aws.invoked == [("shop_add", event)]


@pytest.mark.parametrize(
    ("method", "key"),
    [
        ("tools/list", "tools"),
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ],
)
def test_the_front_door_returns_the_lists_that_the_functions_would_return(aws: Lambda, method: str, key: str) -> None:
    assert call(aws, method, {})["result"][key] == dict(CATALOG)[key]
    assert aws.made == 0  # not even a client


def test_the_front_door_answers_discovery_with_its_instructions(aws: Lambda) -> None:
    result = call(aws, "server/discover", {})["result"]
    assert result["capabilities"] == {"tools": {}, "prompts": {}, "resources": {}, "completions": {}}
    assert result["instructions"] == "Be nice"
    assert aws.made == 0


def test_the_front_door_makes_its_lambda_client_at_the_first_call(aws: Lambda) -> None:
    FrontDoor(CATALOG, SETTINGS, aws)
    assert aws.made == 0
    call(aws, *CALLS[0][:2])
    assert aws.made == 1


@pytest.mark.parametrize(
    ("method", "params", "status", "code"),
    [
        ("tools/call", {"name": "mcp"}, 200, -32602),
        ("tools/call", {"name": "shop_add"}, 200, -32602),
        ("tools/call", {"name": "../add"}, 200, -32602),
        ("tools/call", {"name": "arn:aws:lambda:eu-west-1:1:function:x"}, 200, -32602),
        ("tools/call", {}, 400, -32602),
        ("resources/read", {"uri": "file:///x"}, 200, -32602),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "add"}}, 200, -32602),
        ("completion/complete", {}, 400, -32602),
        ("initialize", {}, 404, -32601),
        ("tasks/get", {"taskId": "x"}, 404, -32601),
    ],
)
def test_the_front_door_invokes_only_functions_in_the_catalog(
    aws: Lambda, method: str, params: dict[str, Any], status: int, code: int
) -> None:
    response = send(aws, wire.event(wire.message(method, params)))
    assert (response["statusCode"], json.loads(response["body"])["error"]["code"]) == (status, code)
    assert aws.invoked == []


@pytest.mark.parametrize(
    "changed",
    [
        {"headers": {"mcp-name": "brief"}},
        {"headers": {"mcp-method": "tools/list"}},
        {"headers": {"mcp-protocol-version": "2025-11-25"}},
        {"headers": {"mcp-param-region": "us"}},
        {"headers": {"origin": "https://evil.example"}},
        {"http_method": "GET"},
    ],
)
def test_the_front_door_does_not_forward_a_refused_request(aws: Lambda, changed: dict[str, Any]) -> None:
    assert send(aws, wire.event(wire.message(*CALLS[0][:2]), **changed))["statusCode"] in {400, 403, 405}
    assert aws.invoked == []


def test_the_front_door_forwards_no_request_without_an_authorizer(aws: Lambda) -> None:
    response = send(aws, wire.event(wire.message(*CALLS[0][:2])), make_settings(stack="shop", auth_mode="iam"))
    assert response["statusCode"] == 500
    assert aws.invoked == []


def client_error(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "hunter2"}}, "Invoke")


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (client_error("ServiceException"), "invoke_ServiceException"),
        (client_error("EC2ThrottledException"), "invoke_EC2ThrottledException"),
        (client_error("ResourceNotReadyException"), "invoke_ResourceNotReadyException"),
        (exceptions.ConnectTimeoutError(endpoint_url="hunter2"), "invoke_ConnectTimeoutError"),
        (exceptions.EndpointConnectionError(endpoint_url="hunter2"), "invoke_EndpointConnectionError"),
    ],
)
def test_the_error_of_a_call_that_did_not_run_allows_a_retry(
    aws: Lambda, failure: Exception, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    aws.failure = failure
    response = send(aws, wire.event(wire.message(*CALLS[0][:2], id="r")))
    received = json.loads(response["body"])
    assert (response["statusCode"], received["id"]) == (503, "r")
    assert received["error"]["data"] == {"retryable": True}
    assert int(response["headers"]["retry-after"]) > 0
    assert caplog.messages == [f"refused: -32603 {reason}"]
    assert "hunter2" not in response["body"] + caplog.text


def test_throttling_by_lambda_is_logged_as_a_refused_request(aws: Lambda, caplog: pytest.LogCaptureFixture) -> None:
    aws.failure = client_error("TooManyRequestsException")
    with caplog.at_level(logging.INFO):
        response = send(aws, wire.event(wire.message(*CALLS[0][:2])))
    assert (response["statusCode"], "retry-after" in response["headers"]) == (503, True)
    (line,) = caplog.records
    assert (line.levelname, vars(line)["outcome"]) == ("INFO", "refused")


@pytest.mark.parametrize(
    "failure",
    [
        exceptions.ReadTimeoutError(endpoint_url="hunter2"),
        exceptions.ConnectionClosedError(endpoint_url="hunter2"),
    ],
)
def test_the_error_of_a_call_that_may_have_run_does_not_allow_a_retry(aws: Lambda, failure: Exception) -> None:
    aws.failure = failure
    response = send(aws, wire.event(wire.message(*CALLS[0][:2])))
    assert response["statusCode"] == 200
    assert "retryable" not in response["body"]
    assert "retry-after" not in response["headers"]


def test_a_connection_lost_during_the_response_is_an_error_of_the_request(aws: Lambda) -> None:
    class Broken(io.BytesIO):
        def read(self, *_size: object) -> bytes:
            raise exceptions.ReadTimeoutError(endpoint_url="hunter2")

    aws.answer = {"StatusCode": 200, "Payload": Broken()}
    response = send(aws, wire.event(wire.message(*CALLS[0][:2])))
    assert (response["statusCode"], "hunter2" in response["body"]) == (200, False)


@pytest.mark.parametrize(
    "failure",
    [client_error("ResourceNotFoundException"), client_error("AccessDeniedException"), RuntimeError("hunter2")],
)
def test_a_missing_function_is_a_misconfiguration(
    aws: Lambda, failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    aws.failure = failure
    response = send(aws, wire.event(wire.message(*CALLS[0][:2])))
    assert response["statusCode"] == 500
    assert json.loads(response["body"])["error"] == {"code": -32603, "message": "Internal error"}
    assert (caplog.records[0].levelname, vars(caplog.records[0]).get("misconfigured")) == ("ERROR", True)
    assert "hunter2" not in response["body"] + caplog.text


@pytest.mark.parametrize(
    "answer",
    [
        {"FunctionError": "Unhandled", "Payload": io.BytesIO(b'{"statusCode":200,"errorMessage":"hunter2"}')},
        {"Payload": io.BytesIO(b"")},
        {"Payload": io.BytesIO(b"null")},
        {"Payload": io.BytesIO(b"[]")},
        {"Payload": io.BytesIO(b'{"errorMessage":"hunter2"}')},
        {"Payload": io.BytesIO(b"hunter2")},
        {"Payload": io.BytesIO(b"\xff")},
    ],
)
def test_a_function_that_crashed_is_an_internal_error(
    aws: Lambda, answer: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    aws.answer = answer
    response = send(aws, wire.event(wire.message(*CALLS[0][:2])))
    assert response["statusCode"] == 200
    assert caplog.messages == ["refused: -32603 function_error"]
    assert "hunter2" not in response["body"] + caplog.text


def test_the_headers_of_a_request_do_not_choose_the_invoked_function(aws: Lambda) -> None:
    call(aws, *CALLS[0][:2], headers={"host": "evil.example", "x-amz-invocation-type": "Event"})
    assert aws.invoked[0][0] == "shop_add"


def test_the_catalog_is_read_at_the_first_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_STACK", "shop")
    monkeypatch.setenv("MCP_AUTH_MODE", "none")
    path = tmp_path / "catalog.json"
    handler = serve_catalog(path, instructions="Be nice")
    path.write_text(json.dumps(CATALOG), encoding="utf-8")
    response = handler(wire.event(wire.message("tools/list")), wire.Context("shop_mcp"))
    assert wire.read(response, "tools/list")["result"]["tools"] == CATALOG["tools"]


def test_a_missing_catalog_is_an_internal_error(tmp_path: Path) -> None:
    handler = serve_catalog(tmp_path / "catalog.json")
    assert handler(wire.event(wire.message("tools/list")), wire.Context("shop_mcp"))["statusCode"] == 500


def test_the_front_door_invokes_with_a_timeout_and_without_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_AWS_CLIENT", "boto3")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    client: Any = lambda_client()
    config = client.meta.config
    assert config.retries["total_max_attempts"] == 1
    assert config.connect_timeout + config.read_timeout <= 30


@pytest.mark.parametrize(("method", "params", "name"), CALLS)
def test_a_stopped_function_is_not_invoked(aws: Lambda, method: str, params: dict[str, Any], name: str) -> None:
    settings = make_settings(stack="shop", auth_mode="none", stopped_functions=frozenset({name.removeprefix("shop_")}))
    event = wire.event(wire.message(method, params))
    answer = send(aws, event, settings)
    assert (answer["statusCode"], answer["headers"]["retry-after"]) == (503, "300")
    assert "has stopped this function" in answer["body"]
    assert aws.invoked == []
    assert send(aws, wire.event(wire.message("tools/list")), settings)["statusCode"] == 200
