"""The harness turns an HTTP request into an event of API Gateway, and the result of a function into a response."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_functions_harness.api_gateway.events import Moment, event
from mcp_functions_harness.api_gateway.responses import INTERNAL_ERROR, response
from mcp_functions_harness.loopback import HttpRequest

MOMENT = Moment(now=1795203843.5, request_id="JKJaXmPLvHcESHA=", trace_id="Root=1-6b00f3c3-0123456789abcdef01234567")
JSON = (("Content-Type", "application/json"),)


def event_of(*headers: tuple[str, str], body: bytes | None = None, target: str = "/mcp") -> dict[str, Any]:
    request = HttpRequest("POST", target, (("Host", "127.0.0.1:8000"), *headers), body, port=8000)
    return dict(event(request, target.partition("?")[0], MOMENT))


def test_a_post_becomes_exactly_this_event() -> None:
    request = HttpRequest(
        "POST",
        "/mcp/add?b=2&a=1&b=3&empty=",
        (
            ("Host", "127.0.0.1:8000"),
            ("User-Agent", "client/1"),
            ("Content-Type", "application/json"),
            ("Accept", "application/json"),
            ("Accept", "text/event-stream"),
            ("Mcp-Method", "tools/call"),
            ("Cookie", "a=1; b=2"),
            ("Connection", "keep-alive"),
            ("Transfer-Encoding", "chunked"),
        ),
        b'{"id":1}',
        port=8000,
    )
    assert event(request, "/mcp/add", MOMENT) == {
        "version": "2.0",
        "routeKey": "ANY /mcp/add",
        "rawPath": "/mcp/add",
        "rawQueryString": "b=2&a=1&b=3&empty=",
        "cookies": ["a=1", "b=2"],
        "headers": {
            "accept": "application/json,text/event-stream",
            "content-length": "8",
            "content-type": "application/json",
            "host": "127.0.0.1:8000",
            "mcp-method": "tools/call",
            "user-agent": "client/1",
            "x-amzn-trace-id": "Root=1-6b00f3c3-0123456789abcdef01234567",
            "x-forwarded-for": "127.0.0.1",
            "x-forwarded-port": "8000",
            "x-forwarded-proto": "http",
        },
        "queryStringParameters": {"b": "2,3", "a": "1", "empty": ""},
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "local00000",
            "domainName": "127.0.0.1",
            "domainPrefix": "127",
            "http": {
                "method": "POST",
                "path": "/mcp/add",
                "protocol": "HTTP/1.1",
                "sourceIp": "127.0.0.1",
                "userAgent": "client/1",
            },
            "requestId": "JKJaXmPLvHcESHA=",
            "routeKey": "ANY /mcp/add",
            "stage": "$default",
            "time": "20/Nov/2026:19:44:03 +0000",
            "timeEpoch": 1795203843500,
        },
        "body": '{"id":1}',
        "isBase64Encoded": False,
    }


def test_an_event_omits_keys_without_a_value() -> None:
    absent = {"body", "cookies", "queryStringParameters", "pathParameters", "stageVariables"}
    assert not absent & event_of().keys()
    assert event_of()["isBase64Encoded"] is False
    assert "authorizer" not in event_of()["requestContext"]


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON",
        "application/xml",
        "application/javascript",
        "text/plain",
        "text/x",
    ],
)
def test_text_and_json_stay_text(content_type: str) -> None:
    made = event_of(("Content-Type", content_type), body="né".encode())
    assert (made["body"], made["isBase64Encoded"]) == ("né", False)


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (("Content-Type", "application/octet-stream"),),
        (("Content-Type", "application/x-www-form-urlencoded"),),
        (("Content-Type", "application/vnd.api+json"),),
    ],
)
def test_every_other_body_is_base64(headers: tuple[tuple[str, str], ...]) -> None:
    made = event_of(*headers, body=b"{}")
    assert (made["body"], made["isBase64Encoded"]) == ("e30=", True)


def test_a_text_body_that_is_not_utf_8_is_base64() -> None:
    assert event_of(*JSON, body=b"\xff")["isBase64Encoded"] is True


def test_an_event_keeps_x_forwarded_for_of_a_proxy_but_not_its_port_and_protocol() -> None:
    headers = event_of(("X-Forwarded-For", "10.1.2.3"), ("X-Forwarded-Port", "1"), ("X-Forwarded-Proto", "gopher"))[
        "headers"
    ]
    assert headers["x-forwarded-for"] == "10.1.2.3, 127.0.0.1"
    assert (headers["x-forwarded-port"], headers["x-forwarded-proto"]) == ("8000", "http")


def test_a_clients_trace_is_passed_on() -> None:
    assert event_of(("X-Amzn-Trace-Id", "Root=1-a-b"))["headers"]["x-amzn-trace-id"] == "Root=1-a-b"


def test_two_requests_of_the_same_time_have_different_ids() -> None:
    one, two = Moment.at(1795203843.5), Moment.at(1795203843.5)
    assert one.request_id != two.request_id
    assert re.fullmatch(r"Root=1-6b00a303-[0-9a-f]{24}", one.trace_id)


@given(st.binary(), st.sampled_from(["application/json", "text/plain", "application/octet-stream", ""]))
def test_the_body_of_an_event_has_every_byte_of_the_request(body: bytes, content_type: str) -> None:
    document = json.loads(json.dumps(event_of(("Content-Type", content_type), body=body)))
    text = document["body"]
    assert (base64.b64decode(text) if document["isBase64Encoded"] else text.encode()) == body


def response_of(result: object) -> tuple[int, dict[str, str], bytes]:
    made = response(json.dumps(result).encode(), MOMENT)
    return made.status, dict(made.headers), made.body


def test_a_result_of_a_function_becomes_an_http_response() -> None:
    status, headers, body = response_of({"statusCode": 202, "headers": {"X-One": "1", "n": 2}, "body": "né"})
    assert (status, body) == (202, "né".encode())
    assert headers == {
        "x-one": "1",
        "n": "2",
        "content-type": "text/plain;charset=UTF-8",
        "apigw-requestid": "JKJaXmPLvHcESHA=",
    }


def test_every_cookie_of_a_result_is_a_header() -> None:
    made = response(b'{"statusCode": 200, "cookies": ["a=1", "b=2"]}', MOMENT)
    assert [value for name, value in made.headers if name == "set-cookie"] == ["a=1", "b=2"]


def test_a_base64_body_is_decoded() -> None:
    assert response_of({"statusCode": "200", "body": "/w==", "isBase64Encoded": True})[2] == b"\xff"


@pytest.mark.parametrize("result", [{"sum": 3}, [1], "text", None, 7])
def test_a_result_without_a_status_is_inferred_to_be_json(result: object) -> None:
    status, headers, body = response_of(result)
    assert (status, headers["content-type"], json.loads(body)) == (200, "application/json", result)


@pytest.mark.parametrize(
    "result",
    [
        {"statusCode": "many"},
        {"statusCode": 99},
        {"statusCode": None},
        {"statusCode": 200, "body": {"not": "text"}},
        {"statusCode": 200, "body": "!", "isBase64Encoded": True},
        {"statusCode": 200, "headers": ["no"]},
        {"statusCode": 200, "headers": {"a": "1\r\nb: 2"}},
        {"statusCode": 200, "headers": {"a b": "1"}},
        {"statusCode": 200, "headers": {"a": None}},
        {"statusCode": 200, "cookies": [1, {}]},
    ],
)
def test_a_result_that_is_no_response_is_an_internal_error(result: object) -> None:
    assert response(json.dumps(result).encode(), MOMENT) == INTERNAL_ERROR


def test_the_harness_ignores_content_length_and_transfer_encoding_of_a_function() -> None:
    headers = response_of({"statusCode": 200, "headers": {"Content-Length": "1", "Transfer-Encoding": "chunked"}})[1]
    assert not {"content-length", "transfer-encoding"} & headers.keys()
