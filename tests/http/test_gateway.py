"""Events in, responses out: what HTTP says, in which order things are checked, and what never leaves.

No `from __future__ import annotations` here: the functions below are read as an author writes them.
"""

import json
import logging
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_functions import Header, Progress, tool
from mcp_functions.http.exchange import Endpoint
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.protocol.errors import TemporarilyUnavailable
from mcp_functions.protocol.messages import ForwardedResponse, Request, Result
from mcp_functions.settings import Settings
from tests.support import wire
from tests.support.dispatching import dispatcher

NOW = 1_785_000_000.0
SETTINGS = Settings(
    stack="local", auth_mode="none", allowed_origins=frozenset({"https://ok.example"}), max_body_bytes=2000
)


@tool
def add(a: int, region: Annotated[str, Header("Region")] = "eu", *, progress: Progress) -> str:
    progress(1)
    return f"{region} {a + 1}"


def function(answer: Callable[[Request], Any] | None = None, settings: Settings = SETTINGS) -> LambdaFunction:
    door = answer or dispatcher((add,), settings, "local/test/local", None).answer
    return LambdaFunction(lambda _name, _now: Endpoint(settings, door), now=lambda: NOW)


def send(
    event: dict[str, Any], answer: Callable[[Request], Any] | None = None, settings: Settings = SETTINGS
) -> dict[str, Any]:
    return function(answer, settings)(event, wire.Context())


def call(**changed: Any) -> dict[str, Any]:  # noqa: ANN401
    return wire.message("tools/call", {"name": "add", "arguments": {"a": 1}}, **changed)


def error(response: dict[str, Any]) -> tuple[int, int]:
    return response["statusCode"], json.loads(response["body"])["error"]["code"]


# HTTP


def test_a_request_is_answered_in_json() -> None:
    response = send(wire.event(call()))
    assert response["statusCode"] == 200
    assert response["headers"]["content-type"] == "application/json"
    assert response["isBase64Encoded"] is False
    assert wire.read(response, "tools/call")["result"]["content"] == [{"type": "text", "text": "eu 2"}]


@pytest.mark.parametrize("event", [wire.event(call()), wire.event("{"), wire.event(call(), http_method="GET")])
def test_no_response_may_be_stored_or_sniffed_and_none_opens_a_session(event: dict[str, Any]) -> None:
    sent = send(event)["headers"]
    assert sent["cache-control"] == "no-store"
    assert sent["x-content-type-options"] == "nosniff"
    assert not {"mcp-session-id", "set-cookie", "access-control-allow-origin"} & {name.lower() for name in sent}


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD", "PATCH", "OPTIONS"])
def test_only_post_is_allowed(method: str) -> None:
    response = send(wire.event(call(), http_method=method))
    assert (response["statusCode"], response["headers"]["allow"], response["body"]) == (405, "POST", "")


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "", "https://ok.example:444", "HTTPS://OK.EXAMPLE"])
def test_an_unknown_origin_is_forbidden(origin: str) -> None:
    response = send(wire.event(call(), headers={"origin": origin}))
    assert (response["statusCode"], response["body"]) == (403, "")


def test_a_known_origin_and_no_origin_are_welcome() -> None:
    assert send(wire.event(call(), headers={"origin": "https://ok.example"}))["statusCode"] == 200
    assert send(wire.event(call(), headers={"origin": None}))["statusCode"] == 200


def test_the_origin_is_checked_before_the_method_and_the_body() -> None:
    assert send(wire.event("{", http_method="GET", headers={"Origin": "https://evil.example"}))["statusCode"] == 403


def test_a_notification_is_accepted_without_a_body() -> None:
    for params in ({}, {"requestId": 1}):
        sent = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        response = send(wire.event(sent, headers={"mcp-method": None, "mcp-protocol-version": None}))
        assert (response["statusCode"], response["body"]) == (202, "")


def test_a_notification_reaches_no_handler() -> None:
    def never(_request: Request) -> Result:
        pytest.fail("a notification was handled")

    sent = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "add"}}
    assert send(wire.event(sent), never)["statusCode"] == 202


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("", -32700),
        ("{", -32700),
        ('{"jsonrpc":"2.0","id":1,"method":"x","method":"y"}', -32700),
        ("[" * 100 + "]" * 100, -32700),
        ('"\ud800"', -32700),
        ("[]", -32600),
        (json.dumps([call()]), -32600),
        ("{}", -32600),
        ('{"jsonrpc":"2.0","id":null,"method":"x"}', -32600),
        ('{"jsonrpc":"2.0","id":1,"result":{}}', -32600),
    ],
)
def test_a_body_that_is_not_one_message_is_400_without_an_id(body: str, code: int) -> None:
    response = send({**wire.event("{}"), "body": body})
    assert error(response) == (400, code)
    received = json.loads(response["body"])
    assert "id" not in received
    wire.check(received, "")


def test_a_missing_body_is_an_unreadable_one() -> None:
    event = wire.event(call())
    del event["body"]
    assert error(send(event)) == (400, -32700)
    assert error(send({**event, "body": None})) == (400, -32700)


def test_a_body_in_base64_is_read() -> None:
    sent = wire.message("tools/call", {"name": "add", "arguments": {"a": 1, "region": "żory"}})
    event = wire.event(sent, base64=True, headers={"mcp-param-region": wire.header("żory")})
    assert "żory" in send(event)["body"]


@pytest.mark.parametrize("body", ["%%%", "e30", "e3 0=", "żółw", "e30=x"])
def test_a_body_that_is_not_the_base64_it_claims_to_be_is_unreadable(body: str) -> None:
    assert error(send({**wire.event("{}"), "body": body, "isBase64Encoded": True})) == (400, -32700)


@pytest.mark.parametrize("base64", [False, True])
def test_a_body_over_the_limit_is_413_and_is_not_parsed(base64: bool) -> None:  # noqa: FBT001
    fitting = json.dumps(call())
    fitting += " " * (SETTINGS.max_body_bytes - len(fitting))
    assert send({**wire.event(call(), base64=base64), **wire_body(fitting, base64=base64)})["statusCode"] == 200
    large = {**wire.event(call(), base64=base64), **wire_body(fitting + " ", base64=base64)}
    assert error(send(large)) == (413, -32600)


def wire_body(body: str, *, base64: bool) -> dict[str, Any]:
    return {key: value for key, value in wire.event(body, base64=base64).items() if key in {"body", "isBase64Encoded"}}


def test_the_limit_counts_bytes_and_not_characters() -> None:
    sent = wire.message("tools/call", {"name": "add", "arguments": {"a": 1, "more": "ż" * 900}})
    event = {**wire.event(sent), "body": json.dumps(sent, ensure_ascii=False)}
    assert len(event["body"]) < SETTINGS.max_body_bytes
    assert error(send(event)) == (413, -32600)


@pytest.mark.parametrize(
    "changed", [{"content-type": "text/plain"}, {"content-type": "text/json"}, {"content-encoding": "gzip"}]
)
def test_a_body_of_another_kind_is_415(changed: dict[str, str]) -> None:
    assert error(send(wire.event(call(), headers=changed))) == (415, -32600)


@pytest.mark.parametrize("media", ["application/json; charset=utf-8", "Application/JSON", None])
def test_json_may_say_its_charset_or_nothing(media: str | None) -> None:
    assert send(wire.event(call(), headers={"content-type": media}))["statusCode"] == 200


def test_header_names_are_read_in_any_case() -> None:
    event = wire.event(call())
    event["headers"] = {name.title(): value for name, value in event["headers"].items()}
    assert send(event)["statusCode"] == 200


def test_an_event_that_is_not_http_is_the_operators_mistake() -> None:
    strangers: list[dict[str, Any]] = [{}, {"Records": []}, {"version": "2.0"}]
    for event in strangers:
        with pytest.raises(ValueError, match="not an HTTP request"):
            send(event)


# The id


@pytest.mark.parametrize("id_", [0, 1, "1", "", "ключ", 2**60])
def test_the_id_comes_back_with_its_type(id_: str | int) -> None:
    for response in (send(wire.event(call(id=id_))), send(wire.event(call(id=id_, version="v999")))):
        received = json.loads(response["body"])["id"]
        assert (received, type(received)) == (id_, type(id_))


def test_an_error_bears_the_id_wherever_it_could_be_read() -> None:
    for body in ('{"jsonrpc":"1.0","id":"a","method":"x"}', '{"jsonrpc":"2.0","id":"a","method":"x","params":[]}'):
        assert json.loads(send(wire.event(body))["body"])["id"] == "a"


# The order of the checks: everything is wrong at first, and is mended one by one.


def test_checks_come_in_the_order_of_the_specification() -> None:
    sent: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "no/such", "params": {}}
    event: dict[str, Any] = {**wire.event("{"), "headers": {"origin": "https://evil.example"}}
    event["requestContext"]["http"]["method"] = "GET"

    def status() -> int:
        return int(send(event)["statusCode"])

    def refused() -> tuple[int, int]:
        return error(send({**event, "body": json.dumps(sent)}))

    def headers(**more: str) -> None:
        event["headers"] |= {name.replace("_", "-"): value for name, value in more.items()}

    assert status() == 403
    event["headers"] = {}
    assert status() == 405
    event["requestContext"]["http"]["method"] = "POST"
    assert error(send(event)) == (400, -32700)
    assert error(send({**event, "body": "[]"})) == (400, -32600)
    assert refused() == (400, -32602)  # no _meta
    sent["params"]["_meta"] = wire.message("x", version="v999")["params"]["_meta"]
    assert refused() == (400, -32020)  # no MCP-Protocol-Version
    headers(mcp_protocol_version="v999")
    assert refused() == (400, -32020)  # no Mcp-Method
    headers(mcp_method="no/such")
    assert refused() == (400, -32022)  # both say v999
    sent["params"]["_meta"] = wire.message("x")["params"]["_meta"]
    headers(mcp_protocol_version=wire.VERSION)
    assert refused() == (404, -32601)  # no such method
    sent["method"], sent["params"]["name"] = "tools/call", "nothing"
    headers(mcp_method="tools/call")
    assert refused() == (400, -32020)  # no Mcp-Name
    headers(mcp_name="nothing")
    assert refused() == (200, -32602)  # no such tool
    sent["params"] |= {"name": "add", "requestState": "x", "inputResponses": 7, "arguments": {"a": "x", "region": "pl"}}
    headers(mcp_name="add")
    assert refused() == (400, -32020)  # no Mcp-Param-Region
    headers(mcp_param_region="pl")
    assert refused() == (400, -32602)  # inputResponses
    del sent["params"]["inputResponses"]
    response = send({**event, "body": json.dumps(sent)})
    assert json.loads(response["body"])["error"]["message"] == "Invalid or expired requestState"
    del sent["params"]["requestState"]
    received = wire.read(send({**event, "body": json.dumps(sent)}), "tools/call")
    assert received["result"]["isError"] is True  # the argument `a`
    sent["params"]["arguments"]["a"] = 1
    received = wire.read(send({**event, "body": json.dumps(sent)}), "tools/call")
    assert received["result"]["content"][0]["text"] == "pl 2"


# Information that never leaves the server


def broken(request: Request) -> Result:
    message = f"hunter2 {request.params}"  # the worst that could happen
    raise LookupError(message)


def test_an_exceptions_text_is_neither_answered_nor_logged(caplog: pytest.LogCaptureFixture) -> None:
    sent = wire.message("tools/call", {"name": "add", "arguments": {"secret": "hunter3"}}, id="r1")
    with caplog.at_level(logging.DEBUG):
        response = send(wire.event(sent), broken)
    assert response["statusCode"] == 200
    assert json.loads(response["body"]) == {
        "jsonrpc": "2.0",
        "id": "r1",
        "error": {"code": -32603, "message": "Internal error"},
    }
    assert "hunter" not in caplog.text
    (said,) = caplog.records
    assert said.levelname == "ERROR"
    assert said.getMessage().startswith("failed: LookupError at ")
    assert f"{__file__}:{broken.__code__.co_firstlineno + 2} in broken" in said.getMessage()
    assert said.exc_info is None


def test_a_refusal_is_logged_by_code_and_reason_alone(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        send(wire.event(call(), headers={"mcp-name": "hunter2"}))
    assert caplog.messages == ["refused: -32020 HeaderMismatch"]
    assert caplog.records[0].levelname == "INFO"


def test_a_result_that_json_cannot_hold_is_an_internal_error() -> None:
    def answer(_request: Request) -> Result:
        return Result({"resultType": "complete", "content": object()})

    assert error(send(wire.event(call()), answer)) == (200, -32603)


def test_a_result_that_lambda_would_not_carry_is_an_error_and_not_a_crash() -> None:
    def answer(_request: Request) -> Result:
        return Result({"resultType": "complete", "content": [{"type": "text", "text": "ż" * 4_000_000}]})

    assert error(send(wire.event(call()), answer)) == (200, -32603)


def test_a_temporary_failure_has_a_retry_after_header(caplog: pytest.LogCaptureFixture) -> None:
    def answer(_request: Request) -> Result:
        raise TemporarilyUnavailable("kms_throttled", retry_after=7)  # noqa: EM101 - an enumerated word

    response = send(wire.event(call()), answer)
    assert error(response) == (503, -32603)
    assert response["headers"]["retry-after"] == "7"
    received = json.loads(response["body"])
    assert received["error"]["data"] == {"retryable": True}
    assert caplog.messages == ["refused: -32603 kms_throttled"]
    assert "kms" not in response["body"]


def test_a_misconfigured_function_writes_the_reason_to_the_log() -> None:
    def wired(_name: str, _now: object) -> Endpoint:
        message = "hunter2"
        raise OSError(message)

    response = LambdaFunction(wired)(wire.event(call()), wire.Context())
    assert error(response) == (500, -32603)
    assert "hunter2" not in response["body"]


# Wiring, deadline, caller


def test_a_function_is_wired_once_with_its_physical_name() -> None:
    names = []

    def wired(name: str, _now: object) -> Endpoint:
        names.append(name)
        return Endpoint(SETTINGS, dispatcher((add,), SETTINGS, "a", None).answer)

    made = LambdaFunction(wired)
    assert names == []
    for _event in range(2):
        made(wire.event(call()), wire.Context("local_add"))
    assert names == ["local_add"]


def seen(event: dict[str, Any], context: wire.Context | None = None, settings: Settings = SETTINGS) -> Request:
    requests: list[Request] = []

    def answer(request: Request) -> Result:
        requests.append(request)
        meta = {"_meta": {wire.PREFIX + "serverInfo": {"name": "s", "version": "1"}}}
        return Result({"resultType": "complete", "content": [], **meta})

    response = function(answer, settings)(event, context or wire.Context())
    assert response["statusCode"] == 200
    return requests[0]


@pytest.mark.parametrize(
    ("remaining_ms", "began", "deadline"),
    [
        (60_000, None, NOW + 30),
        (10_000, None, NOW + 10),
        (60_000, NOW - 5, NOW + 25),
        (10_000, NOW - 25, NOW + 5),
        (60_000, NOW - 29, NOW + 1),
        (60_000, NOW - 45, NOW + 30),  # no request is that old: the two clocks differ by less than a minute
        (60_000, NOW - 3600, NOW + 30),  # a stopped clock: says nothing
        (60_000, NOW + 5, NOW + 30),
        (60_000, NOW / 1000, NOW + 30),  # seconds, as SAM local writes them
    ],
)
def test_a_request_ends_when_lambda_or_api_gateway_ends(
    remaining_ms: int, began: float | None, deadline: float
) -> None:
    context = {} if began is None else {"timeEpoch": int(began * 1000)}
    request = seen(wire.event(call(), context=context), wire.Context(remaining_ms=remaining_ms))
    assert request.gateway_deadline == pytest.approx(deadline)


def test_the_caller_is_known_by_principal_and_address() -> None:
    request = seen(wire.event(call()))
    assert (request.principal, request.address) == (None, "192.0.2.1")
    authorizer = {"authorizer": {"iam": {"accountId": "1", "userId": "ann"}}}
    request = seen(wire.event(call(), context=authorizer), settings=SETTINGS._replace(auth_mode="iam"))
    assert request.principal == ("aws:iam", "1/ann", "")


@pytest.mark.parametrize("mode", ["iam", "jwt"])
def test_a_route_without_its_authorizer_lets_no_request_in(mode: Any) -> None:  # noqa: ANN401
    sent = wire.event(call(), headers={"authorization": "Bearer x"})
    assert error(send(sent, settings=SETTINGS._replace(auth_mode=mode))) == (500, -32603)


def test_the_event_is_kept_for_a_front_door() -> None:
    event = wire.event(call())
    assert seen(event).event == event


def test_another_functions_response_is_passed_on_unchanged() -> None:
    inner = send(wire.event(call()))
    response = send(wire.event(call()), lambda _request: ForwardedResponse({**inner, "cookies": ["kept"]}))
    assert response == {**inner, "cookies": ["kept"]}


# Streams


def test_reports_precede_the_result_in_one_stream() -> None:
    response = send(wire.event(call(meta={"progressToken": "p"})))
    assert response["headers"]["content-type"] == "text/event-stream"
    assert response["headers"]["x-accel-buffering"] == "no"
    progress, result = wire.messages(response)
    assert progress["method"] == "notifications/progress"
    assert result["id"] == 1
    assert response["body"].endswith("\n\n")
    assert "\nid:" not in response["body"]


@pytest.mark.parametrize(
    "accepted",
    [
        "application/json",
        "application/json, text/html",
        "",
        "text/event-stream;q=0",
        "text/event-stream; Q=0.000, */*",
        "*/*;q=1, text/*;q=0",
        "text/event-streams, application/text/event-stream",
        "text/event-stream;q=nan",
        "text/event-stream;q=2",
        "text/event-stream;q=much",
    ],
)
def test_a_client_that_takes_no_stream_gets_the_result_alone(accepted: str) -> None:
    response = send(wire.event(call(meta={"progressToken": "p"}), headers={"accept": accepted}))
    assert response["headers"]["content-type"] == "application/json"
    assert wire.read(response, "tools/call")["result"]["isError"] is False


@pytest.mark.parametrize(
    "accepted",
    [
        "text/event-stream",
        "*/*",
        "text/*",
        "application/json, text/event-stream",
        None,
        "text/event-stream;q=0.001, application/json",
        "Text/Event-Stream ; charset=utf-8 ; q=0.5",
        "text/*;q=0, text/event-stream",
        "*/*;q=0, text/*;q=0.1",
        "text/event-stream;q=0, text/event-stream",
    ],
)
def test_a_client_that_takes_anything_gets_a_stream(accepted: str | None) -> None:
    response = send(wire.event(call(meta={"progressToken": "p"}), headers={"accept": accepted}))
    assert response["headers"]["content-type"] == "text/event-stream"


def test_lines_of_a_message_do_not_break_a_stream() -> None:
    def answer(_request: Request) -> Result:
        told = {
            "jsonrpc": "2.0",
            "method": "notifications/message",
            "params": {"level": "info", "data": "a\n\ndata: b\r"},
        }
        meta = {"_meta": {wire.PREFIX + "serverInfo": {"name": "s", "version": "1"}}}
        return Result({"resultType": "complete", "content": [], **meta}, (told,))

    told, _result = wire.messages(send(wire.event(call()), answer))
    assert told["params"]["data"] == "a\n\ndata: b\r"


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_no_body_makes_a_healthy_function_fail(body: bytes) -> None:
    text = body.decode("latin-1")
    for encoded in (False, True):
        response = send({**wire.event("{}"), "body": text, "isBase64Encoded": encoded})
        assert response["statusCode"] in {202, 400}


@pytest.mark.parametrize("token", ["ks1.QUJD-_", 'an "own" codec\'s \\ token', "ключ"])
def test_every_sealed_state_is_escaped_in_json(token: str) -> None:
    told = {"io.modelcontextprotocol/serverInfo": {"name": "shop", "version": "0"}}
    result = {"resultType": "input_required", "inputRequests": {}, "requestState": token, "_meta": told}
    endpoint = Endpoint(Settings("shop", auth_mode="none"), lambda _request: Result(result))
    event = wire.event(wire.message("tools/call", {"name": "ask", "arguments": {}}))
    response = LambdaFunction(lambda _name, _now: endpoint)(event, wire.Context())
    assert json.loads(response["body"])["result"] == result
