"""A `LambdaFunction` takes an event of API Gateway and returns an HTTP response with a JSON-RPC message.

The function under test has the tool `add`, or `handle`, which takes the place of the dispatcher. `send` invokes it;
`wire.message` writes a JSON-RPC request and `wire.event` the event with it. `error` returns the status and the code.
"""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_functions import Progress, tool
from mcp_functions.annotated import Header
from mcp_functions.assembly import Parts, assemble
from mcp_functions.http import identity
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.protocol.errors import TemporarilyUnavailable
from mcp_functions.protocol.messages import ForwardedResponse, Identity, Request, Result
from tests.support import filters, wire
from tests.support.dispatching import make_parts
from tests.support.endpoints import Answering, make_function
from tests.support.settings import make_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.http.exchange import Endpoint
    from mcp_functions.settings import Settings

NOW = 1_785_000_000.0
SETTINGS = make_settings(
    stack="local", auth_mode="none", allowed_origins=frozenset({"https://ok.example"}), max_body_bytes=2000
)
SERVER_INFO = {wire.PREFIX + "serverInfo": {"name": "s", "version": "1"}}  # every result has it
EMPTY_RESULT = {"resultType": "complete", "content": [], "_meta": SERVER_INFO}
EMPTY_LIST = {"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "private", "_meta": SERVER_INFO}
# The status and the code of errors.
PARSE_ERROR = (400, -32700)
INVALID_REQUEST = (400, -32600)
INVALID_PARAMS = (400, -32602)
HEADER_MISMATCH = (400, -32020)
UNSUPPORTED_VERSION = (400, -32022)
METHOD_NOT_FOUND = (404, -32601)
UNKNOWN_TOOL = (200, -32602)


@tool
def add(a: int, region: Annotated[str, Header("Region")] = "eu", *, progress: Progress) -> str:
    progress(1)
    return f"{region} {a + 1}"


def send(
    event: dict[str, Any],
    handle: Callable[[Request], Any] | None = None,
    *,
    settings: Settings = SETTINGS,
    context: wire.Context | None = None,
) -> dict[str, Any]:
    handle = handle or assemble(make_parts((add,), settings, "test", None)).answer
    function = make_function(settings, handle, now=lambda: NOW)
    return function(event, context or wire.Context())


def call(**options: Any) -> dict[str, Any]:  # noqa: ANN401 - the options of wire.message
    return wire.message("tools/call", {"name": "add", "arguments": {"a": 1}}, **options)


def error(response: dict[str, Any]) -> tuple[int, int]:
    return response["statusCode"], json.loads(response["body"])["error"]["code"]


# HTTP


def test_a_request_is_answered_in_json() -> None:
    response = send(wire.event(call()))
    assert response["statusCode"] == 200
    assert response["headers"]["content-type"] == "application/json"
    assert response["isBase64Encoded"] is False
    assert wire.read(response, "tools/call")["result"]["content"] == [{"type": "text", "text": "eu 2"}]


@pytest.mark.parametrize(
    "event",
    [wire.event(call()), wire.event("{"), wire.event(call(), http_method="GET")],
    ids=["a result", "an error", "a refused method"],
)
def test_no_response_may_be_cached_or_sniffed_or_has_a_session_id(event: dict[str, Any]) -> None:
    headers = send(event)["headers"]
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    names = {name.lower() for name in headers}
    assert not names & {"mcp-session-id", "set-cookie", "access-control-allow-origin"}


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "", "https://ok.example:444", "HTTPS://OK.EXAMPLE"])
def test_an_unknown_origin_is_forbidden(origin: str) -> None:
    response = send(wire.event(call(), headers={"origin": origin}))
    assert (response["statusCode"], response["body"]) == (403, "")


@pytest.mark.parametrize("origin", ["https://ok.example", None])
def test_a_known_origin_and_no_origin_are_allowed(origin: str | None) -> None:
    assert send(wire.event(call(), headers={"origin": origin}))["statusCode"] == 200


@pytest.mark.parametrize("params", [{}, {"requestId": 1}])
def test_a_notification_is_accepted_without_a_body(params: dict[str, Any]) -> None:
    notification = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    response = send(wire.event(notification, headers={"mcp-method": None, "mcp-protocol-version": None}))
    assert (response["statusCode"], response["body"]) == (202, "")


def test_a_notification_reaches_no_handler() -> None:
    def handle(_request: Request) -> Result:
        pytest.fail("a notification was handled")

    notification = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "add"}}
    assert send(wire.event(notification), handle)["statusCode"] == 202


def test_a_notification_is_checked_like_a_request() -> None:
    """Its media type and its caller are checked, so a stopped or unknown caller learns it from every message."""
    notification = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}}
    assert error(send(wire.event(notification, headers={"content-type": "text/plain"}))) == (415, -32600)
    claims = {"iss": "https://another.example", "sub": "ann"}
    event = wire.event(notification, context={"authorizer": {"jwt": {"claims": claims}}})
    settings = make_settings(auth_mode="jwt", jwt_issuer="https://id.example", jwt_audiences=("shop",))
    assert send(event, settings=settings)["statusCode"] == 401


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("", PARSE_ERROR, id="no text"),
        pytest.param("{", PARSE_ERROR, id="no JSON"),
        pytest.param('"\ud800"', PARSE_ERROR, id="half a character"),
        pytest.param(json.dumps([call()]), INVALID_REQUEST, id="an array"),
        pytest.param("{}", INVALID_REQUEST, id="no members"),
        pytest.param('{"jsonrpc":"2.0","id":null,"method":"x"}', INVALID_REQUEST, id="the id is null"),
    ],
)
def test_a_body_that_is_not_one_message_is_400_without_an_id(body: str, expected: tuple[int, int]) -> None:
    response = send({**wire.event("{}"), "body": body})
    assert error(response) == expected
    message = json.loads(response["body"])
    assert "id" not in message
    wire.check(message, "")


def test_a_missing_body_cannot_be_parsed() -> None:
    event = {**wire.event(call()), "body": None}
    assert error(send(event)) == PARSE_ERROR
    del event["body"]
    assert error(send(event)) == PARSE_ERROR


@pytest.mark.parametrize("body", ["%%%", "e30", "e3 0=", "żółw", "e30=x"])
def test_a_body_that_is_not_canonical_base64_is_refused(body: str) -> None:
    assert error(send({**wire.event("{}"), "body": body, "isBase64Encoded": True})) == PARSE_ERROR


@pytest.mark.parametrize("base64", [False, True])
def test_a_body_over_the_limit_is_413_and_is_not_parsed(*, base64: bool) -> None:
    longest_body = json.dumps(call()).ljust(SETTINGS.max_body_bytes)
    headers = wire.headers(call())
    assert send(wire.event(longest_body, base64=base64, headers=headers))["statusCode"] == 200
    assert error(send(wire.event(longest_body + " ", base64=base64, headers=headers))) == (413, -32600)


def test_the_limit_counts_bytes_and_not_characters() -> None:
    sent = wire.message("tools/call", {"name": "add", "arguments": {"a": 1, "more": "ż" * 900}})
    event = {**wire.event(sent), "body": json.dumps(sent, ensure_ascii=False)}
    assert len(event["body"]) < SETTINGS.max_body_bytes
    assert error(send(event)) == (413, -32600)


@pytest.mark.parametrize(
    "headers", [{"content-type": "text/plain"}, {"content-type": "text/json"}, {"content-encoding": "gzip"}]
)
def test_a_body_of_another_media_type_or_encoding_is_415(headers: dict[str, str]) -> None:
    assert error(send(wire.event(call(), headers=headers))) == (415, -32600)


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "Application/JSON", None])
def test_json_may_have_a_charset_or_no_content_type(content_type: str | None) -> None:
    assert send(wire.event(call(), headers={"content-type": content_type}))["statusCode"] == 200


def test_header_names_are_read_in_any_case() -> None:
    event = wire.event(call())
    event["headers"] = {name.title(): value for name, value in event["headers"].items()}
    assert send(event)["statusCode"] == 200


OTHER_EVENTS: dict[str, list[Any]] = {
    "a direct call": [{}, {"version": "2.0"}, [wire.event(call())], ["mcpTask"], "mcpTask", None, 1],
    "a queue (SQS)": [{"Records": [{"eventSource": "aws:sqs", "body": "a secret of a customer"}]}],
    "a bucket (S3)": [{"Records": [{"eventSource": "aws:s3", "s3": {"object": {"key": "a secret"}}}]}],
    "a topic (SNS)": [{"Records": [{"EventSource": "aws:sns", "Sns": {"Message": "a secret"}}]}],
    "a table's stream (DynamoDB)": [{"Records": [{"eventSource": "aws:dynamodb", "dynamodb": {}}]}],
    "a service that sends records": [{"Records": [{"eventSource": "a secret"}]}],
    "EventBridge or a schedule": [{"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}}],
    "a REST API": [{"httpMethod": "POST", "path": "/mcp", "headers": {}, "requestContext": {}}],
    "a load balancer": [{"httpMethod": "POST", "path": "/", "headers": {}, "requestContext": {"elb": {}}}],
}


@pytest.mark.parametrize(
    ("sender", "event"), [(sender, event) for sender, events in OTHER_EVENTS.items() for event in events]
)
def test_an_event_of_another_service_fails_and_one_line_says_of_which(
    sender: str,
    event: Any,  # noqa: ANN401 - JSON
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level("INFO", "mcp_functions"), pytest.raises(ValueError, match="not an HTTP request"):
        send(event)
    (line,) = caplog.records
    assert f"but of {sender}" in line.getMessage()
    assert "a plain function outside functions/" in line.getMessage()
    assert "secret" not in str(vars(line))
    assert filters.count_metrics([vars(line)]).keys() >= {"Misconfigured"}


# The id


@pytest.mark.parametrize("id_", [0, 1, "1", "", "ключ", 2**60])
@pytest.mark.parametrize("version", [wire.VERSION, "v999"], ids=["a result", "an error"])
def test_a_response_has_the_id_of_its_request(id_: str | int, version: str) -> None:
    id_of_response = json.loads(send(wire.event(call(id=id_, version=version)))["body"])["id"]
    assert id_of_response == id_
    assert type(id_of_response) is type(id_)


# The order of the checks. A request begins with several mistakes, and each assertion is about one mistake less.


def test_http_is_checked_before_the_message() -> None:
    def event(body: str, http_method: str = "POST", **headers: str) -> dict[str, Any]:
        return {**wire.event(body, http_method=http_method), "headers": headers}

    assert send(event("{", "GET", origin="https://evil.example"))["statusCode"] == 403
    own = make_settings(auth_mode="none", earlier_revisions=False)
    assert send(event("{", "GET"), settings=own)["statusCode"] == 405
    assert error(send(event("{"), settings=own)) == PARSE_ERROR
    assert error(send(event("[]"), settings=own)) == INVALID_REQUEST
    without_meta = event('{"jsonrpc":"2.0","id":1,"method":"no/such","params":{}}')
    assert error(send(without_meta, settings=own)) == INVALID_PARAMS


def test_headers_are_checked_before_the_version_and_the_version_before_the_method() -> None:
    message = wire.message("no/such", version="v999")
    without_both = {"mcp-protocol-version": None, "mcp-method": None}
    assert error(send(wire.event(message, headers=without_both))) == HEADER_MISMATCH
    assert error(send(wire.event(message, headers={"mcp-method": None}))) == HEADER_MISMATCH
    assert error(send(wire.event(message))) == UNSUPPORTED_VERSION
    assert error(send(wire.event(wire.message("no/such")))) == METHOD_NOT_FOUND


def test_a_call_is_checked_in_order_name_parameters_answers_state_arguments() -> None:
    arguments: dict[str, Any] = {"a": "no number", "region": "pl"}
    params = {"name": "add", "arguments": arguments, "inputResponses": 7, "requestState": "x"}

    def call(headers: dict[str, str | None] | None = None) -> dict[str, Any]:
        all_headers = {"mcp-param-region": "pl", **(headers or {})}
        return send(wire.event(wire.message("tools/call", params), headers=all_headers))

    assert error(call({"mcp-name": None})) == HEADER_MISMATCH
    assert error(call({"mcp-param-region": None})) == HEADER_MISMATCH
    assert error(call()) == INVALID_PARAMS  # inputResponses
    del params["inputResponses"]
    assert json.loads(call()["body"])["error"]["message"] == "Invalid or expired requestState"
    del params["requestState"]
    assert wire.read(call(), "tools/call")["result"]["isError"] is True  # the argument `a`
    arguments["a"] = 1
    assert wire.read(call(), "tools/call")["result"]["content"][0]["text"] == "pl 2"


def test_the_tool_is_looked_up_before_its_parameters_are_checked() -> None:
    message = wire.message("tools/call", {"name": "nothing", "arguments": {"region": "pl"}, "inputResponses": 7})
    assert error(send(wire.event(message, headers={"mcp-name": None}))) == HEADER_MISMATCH
    assert error(send(wire.event(message))) == UNKNOWN_TOOL


# Information that never leaves the server


def fail(request: Request) -> Result:
    message = f"hunter2 {request.params}"
    raise LookupError(message)


def test_an_exceptions_text_is_neither_answered_nor_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    message = wire.message("tools/call", {"name": "add", "arguments": {"secret": "hunter3"}}, id="r1")
    response = send(wire.event(message), fail)
    assert response["statusCode"] == 200
    assert json.loads(response["body"]) == {
        "jsonrpc": "2.0",
        "id": "r1",
        "error": {"code": -32603, "message": "Internal error"},
    }
    assert "hunter" not in caplog.text
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.getMessage().startswith("failed: LookupError at ")
    assert f"{__file__}:{fail.__code__.co_firstlineno + 2} in fail" in record.getMessage()
    assert record.exc_info is None


def test_a_refusal_is_logged_by_code_and_reason_alone(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        send(wire.event(call(), headers={"mcp-name": "hunter2"}))
    assert caplog.messages == ["refused: -32020 HeaderMismatch"]
    assert caplog.records[0].levelname == "INFO"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(object(), id="no JSON"),
        pytest.param([{"type": "text", "text": "ż" * 4_000_000}], id="more than Lambda may return"),
    ],
)
def test_a_result_that_cannot_be_sent_is_an_internal_error(content: Any) -> None:  # noqa: ANN401
    result = Result({"resultType": "complete", "content": content})
    assert error(send(wire.event(call()), lambda _request: result)) == (200, -32603)


def test_a_temporary_failure_has_a_retry_after_header(caplog: pytest.LogCaptureFixture) -> None:
    def handle(_request: Request) -> Result:
        raise TemporarilyUnavailable("kms_throttled", retry_after=7)  # noqa: EM101 - an enumerated word

    response = send(wire.event(call()), handle)
    assert error(response) == (503, -32603)
    assert response["headers"]["retry-after"] == "7"
    assert json.loads(response["body"])["error"]["data"] == {"retryable": True}
    assert caplog.messages == ["refused: -32603 kms_throttled"]
    assert "kms" not in response["body"]


# A LambdaFunction gets a factory of its endpoint, because the settings can be read only in an invocation.


def test_the_response_of_a_misconfigured_function_does_not_show_the_reason() -> None:
    def make_endpoint(_name: str, _now: object) -> Endpoint:
        message = "hunter2"
        raise OSError(message)

    response = LambdaFunction(make_endpoint)(wire.event(call()), wire.Context())
    assert error(response) == (500, -32603)
    assert "hunter2" not in response["body"]


def test_the_endpoint_is_made_once_at_the_first_event_with_the_name_of_the_function() -> None:
    names = []

    def make_endpoint(name: str, _now: object) -> Endpoint:
        names.append(name)
        return assemble(Parts(SETTINGS, "add", time.time), Answering(lambda _request: Result(EMPTY_RESULT)))

    function = LambdaFunction(make_endpoint)
    assert names == []
    function(wire.event(call()), wire.Context("local_add"))
    function(wire.event(call()), wire.Context("local_add"))
    assert names == ["local_add"]


# The request that the handler gets


def handled_request(event: dict[str, Any], **options: Any) -> Request:  # noqa: ANN401 - the options of send
    requests: list[Request] = []

    def handle(request: Request) -> Result:
        requests.append(request)
        return Result(EMPTY_RESULT)

    assert send(event, handle, **options)["statusCode"] == 200
    return requests[0]


# API Gateway ends a request 30 seconds after it began, and Lambda ends an invocation after its own timeout.


@pytest.mark.parametrize(
    ("remaining_ms", "seconds_left"), [(60_000, 30), (10_000, 10)], ids=["API Gateway ends first", "Lambda ends first"]
)
def test_without_a_start_a_request_began_now(remaining_ms: int, seconds_left: int) -> None:
    request = handled_request(wire.event(call()), context=wire.Context(remaining_ms=remaining_ms))
    assert request.gateway_deadline == pytest.approx(NOW + seconds_left)


@pytest.mark.parametrize(
    ("began", "seconds_left"),
    [
        pytest.param(NOW - 5, 25, id="5 seconds ago"),
        pytest.param(NOW - 29, 1, id="29 seconds ago"),
        pytest.param(NOW - 45, 30, id="longer ago than a request takes: the clocks differ"),
        pytest.param(NOW - 3600, 30, id="an hour ago: the clock of sam local stops"),
        pytest.param(NOW + 5, 30, id="in the future: the clocks differ"),
        pytest.param(NOW / 1000, 30, id="in seconds, as sam local writes it"),
    ],
)
def test_a_request_ends_when_lambda_or_api_gateway_ends(began: float, seconds_left: int) -> None:
    event = wire.event(call(), context={"timeEpoch": int(began * 1000)})
    request = handled_request(event, context=wire.Context(remaining_ms=60_000))
    assert request.gateway_deadline == pytest.approx(NOW + seconds_left)


def test_the_time_for_checking_the_caller_does_not_extend_the_deadline_of_lambda(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise the lease of a round would end before the round, and another invocation would run it too."""
    remaining_ms = [20_000]
    context = wire.Context()
    monkeypatch.setattr(context, "get_remaining_time_in_millis", lambda: remaining_ms[0])

    def ask_kms(*_arguments: object) -> Identity:
        remaining_ms[0] -= 5_000
        return Identity()

    monkeypatch.setattr(identity, "admit", ask_kms)
    requests: list[Request] = []

    def handle(request: Request) -> Result:
        requests.append(request)
        return Result(EMPTY_LIST)

    function = make_function(SETTINGS, handle, now=lambda: NOW)
    message_of_2025 = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for message, headers in [(wire.message("tools/list"), {}), (message_of_2025, {"mcp-protocol-version": None})]:
        remaining_ms[0] = 20_000
        assert function(wire.event(message, headers=headers), context)["statusCode"] == 200
    assert [request.lambda_deadline for request in requests] == [NOW + 20, NOW + 20]


def test_a_request_without_an_authorizer_has_an_address_and_no_principal() -> None:
    request = handled_request(wire.event(call()))
    assert request.principal is None
    assert request.address == "192.0.2.1"


def test_the_event_is_kept_for_a_front_door() -> None:
    event = wire.event(call())
    assert handled_request(event).event == event


@pytest.mark.parametrize(
    "credential",
    [
        {"headers": {"authorization": "Bearer hunter2"}},
        {"headers": {"Authorization": "Bearer hunter2", "AUTHORIZATION": "hunter2"}},
        {"headers": {"Proxy-Authorization": "Basic hunter2"}},
        {"headers": {"Cookie": "session=hunter2"}},
        {"headers": {"X-Amz-Security-Token": "hunter2"}},
        {"headers": {"x-api-key": "hunter2"}},
        {"cookies": ["session=hunter2"]},
        {"multiValueHeaders": {"Authorization": ["Bearer hunter2"]}},
        {"rawQueryString": "access_token=hunter2", "queryStringParameters": {"access_token": "hunter2"}},
        {"multiValueQueryStringParameters": {"X-Amz-Signature": ["hunter2"]}},
    ],
    ids=lambda credential: " ".join([*credential, *credential.get("headers", {})]),
)
def test_neither_a_handler_nor_a_forwarded_event_has_a_credential_of_the_caller(credential: dict[str, Any]) -> None:
    event = wire.event(call(), headers={"x-more": "1"})
    sent = {**event, **credential, "headers": {**event["headers"], **credential.get("headers", {})}}
    request = handled_request(sent)
    assert "hunter2" not in repr(request)
    assert request.event == event
    assert "hunter2" in repr(sent)  # the event of the caller stays as it was


def test_another_functions_response_is_passed_on_unchanged() -> None:
    forwarded = {**send(wire.event(call())), "cookies": ["a=b"]}
    assert send(wire.event(call()), lambda _request: ForwardedResponse(forwarded)) == forwarded


# Streams


def test_progress_and_the_result_are_events_of_one_stream() -> None:
    response = send(wire.event(call(meta={"progressToken": "p"})))
    assert response["headers"]["content-type"] == "text/event-stream"
    assert response["headers"]["x-accel-buffering"] == "no"
    progress, result = wire.messages(response)
    assert progress["method"] == "notifications/progress"
    assert result["id"] == 1
    assert response["body"].endswith("\n\n")
    assert "\nid:" not in response["body"]


@pytest.mark.parametrize(
    "accept",
    [
        "application/json",
        "application/json, text/html",
        "",
        "text/event-stream;q=0",
        pytest.param("text/event-stream; Q=0.000, */*", id="zero for the exact type, and anything else"),
        pytest.param("*/*;q=1, text/*;q=0", id="anything but text"),
        pytest.param("text/event-streams, application/text/event-stream", id="similar types"),
        "text/event-stream;q=nan",
        "text/event-stream;q=2",
        "text/event-stream;q=much",
    ],
)
def test_a_client_that_accepts_no_stream_gets_the_result_alone(accept: str) -> None:
    response = send(wire.event(call(meta={"progressToken": "p"}), headers={"accept": accept}))
    assert response["headers"]["content-type"] == "application/json"
    assert wire.read(response, "tools/call")["result"]["isError"] is False


@pytest.mark.parametrize(
    "accept",
    [
        "text/event-stream",
        "*/*",
        "text/*",
        "application/json, text/event-stream",
        None,
        "text/event-stream;q=0.001, application/json",
        "Text/Event-Stream ; charset=utf-8 ; q=0.5",
        pytest.param("text/*;q=0, text/event-stream", id="the exact type, and no other text"),
        pytest.param("*/*;q=0, text/*;q=0.1", id="text, and nothing else"),
        pytest.param("text/event-stream;q=0, text/event-stream", id="both no and yes"),
    ],
)
def test_a_client_that_accepts_a_stream_gets_one(accept: str | None) -> None:
    response = send(wire.event(call(meta={"progressToken": "p"}), headers={"accept": accept}))
    assert response["headers"]["content-type"] == "text/event-stream"


def test_line_ends_in_a_message_do_not_break_a_stream() -> None:
    params = {"level": "info", "data": "a\n\ndata: b\r"}
    notification = {"jsonrpc": "2.0", "method": "notifications/message", "params": params}
    response = send(wire.event(call()), lambda _request: Result(EMPTY_RESULT, (notification,)))
    assert wire.messages(response)[0] == notification


@pytest.mark.parametrize("base64", [False, True])
@given(body=st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_no_random_body_causes_a_server_error(body: bytes, *, base64: bool) -> None:
    response = send({**wire.event("{}"), "body": body.decode("latin-1"), "isBase64Encoded": base64})
    assert response["statusCode"] in {202, 400}


@pytest.mark.parametrize("token", ["ks1.QUJD-_", 'the "own" \\ token of a codec', "ключ"])
def test_every_request_state_is_escaped_in_json(token: str) -> None:
    result = {"resultType": "input_required", "inputRequests": {}, "requestState": token, "_meta": SERVER_INFO}
    response = send(wire.event(call()), lambda _request: Result(result))
    assert json.loads(response["body"])["result"] == result
