"""Every gateway writes its own events, and a function reads the same request and the same caller from each of them.

`GATEWAYS` has a function for each gateway, which makes its event from a client's request. `call` makes the request
that calls the tool `weather`, and `answer` the one that answers its question.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from aws_lambda_powertools.utilities.parser.models import APIGatewayProxyEventV2Model, LambdaFunctionUrlModel
from pydantic import BaseModel

from mcp_functions import Elicit, serve, tool
from tests.support import gateways, wire
from tests.support.gateways import GATEWAYS, HttpRequest, by_iam, by_jwt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.http.gateway import LambdaFunction
    from tests.support.gateways import Event

INVALID_TOKEN_ERROR = {"code": -32600, "message": "Invalid access token", "data": {"reason": "invalid_token"}}
INVALID_STATE_ERROR = {
    "code": -32602,
    "message": "Invalid or expired requestState",
    "data": {"reason": "invalid_request_state"},
}
INTERNAL_ERROR = {"code": -32603, "message": "Internal error"}
HEADER_MISMATCH = -32020
ISSUER = "https://id.example"
MODELS: dict[str, type[BaseModel]] = {
    "HTTP API": APIGatewayProxyEventV2Model,
    "HTTP API, sam local": APIGatewayProxyEventV2Model,
    "function URL": LambdaFunctionUrlModel,
    "HTTP API, base64": APIGatewayProxyEventV2Model,
}
every_gateway = pytest.mark.parametrize("gateway", GATEWAYS)


class City(BaseModel):
    city: str


@tool
def weather(day: str, *, elicit: Elicit) -> str:
    """Return the weather of a day."""
    return f"{day} in {elicit('where', 'Where?', City).city}: sunny — ☀"


@pytest.fixture(scope="module")
def function() -> LambdaFunction:
    return serve(weather)


@cache
def deploy(auth_mode: str) -> LambdaFunction:
    """Deploy the function with an AuthMode. It reads the environment at its first request."""
    function = serve(weather)
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in (gateways.JWT_SETTINGS | {"MCP_AUTH_MODE": auth_mode}).items():
            patch.setenv(variable, value)
        function(GATEWAYS["HTTP API"](call()), wire.Context("local_weather"))
    return function


def call(**params: Any) -> HttpRequest:  # noqa: ANN401 - JSON values
    return gateways.http_request(
        wire.message("tools/call", {"name": "weather", "arguments": {"day": "Friday"}, **params})
    )


def answer(state: str) -> HttpRequest:
    return call(inputResponses={"where": {"action": "accept", "content": {"city": "Zürich"}}}, requestState=state)


def send(function: LambdaFunction, event: Event) -> wire.Reply:
    return wire.Reply.of(function(json.loads(json.dumps(event)), wire.Context("local_weather")), "tools/call")


# The events of GATEWAYS agree with the models of Powertools for AWS Lambda.


@every_gateway
@pytest.mark.parametrize(
    "request_", [call(), HttpRequest(b"", (("Host", "h"), ("User-Agent", "u")), "GET")], ids=["POST", "GET"]
)
def test_powertools_reads_the_events_of_the_tests(gateway: str, request_: HttpRequest) -> None:
    event = GATEWAYS[gateway](request_)
    known = MODELS[gateway].model_validate(event).model_dump(by_alias=True)
    assert known["headers"] == event["headers"]
    assert not event.keys() - known.keys()


@pytest.mark.parametrize("gateway", ["HTTP API", "function URL"])
@pytest.mark.parametrize("by_caller", [lambda event: by_iam(event, "ann"), lambda event: by_jwt(event, sub="ann")])
def test_powertools_reads_the_callers_of_the_tests(gateway: str, by_caller: Callable[[Event], Event]) -> None:
    event = by_caller(GATEWAYS[gateway](call()))
    context = MODELS[gateway].model_validate(event).model_dump(by_alias=True)["requestContext"]
    assert "ann" in json.dumps([context.get("authorizer"), context.get("identity")], default=str)


# A conversation


@every_gateway
def test_a_conversation_of_two_rounds_runs_over_every_gateway(gateway: str, function: LambdaFunction) -> None:
    first = send(function, GATEWAYS[gateway](call()))
    assert first.questions == ["where"]
    assert send(function, GATEWAYS[gateway](answer(first.state))).text == "Friday in Zürich: sunny — ☀"


@every_gateway
def test_a_conversation_may_change_its_gateway_between_rounds(gateway: str, function: LambdaFunction) -> None:
    state = send(function, GATEWAYS[gateway](call())).state
    for other_gateway in GATEWAYS.values():
        assert send(function, other_gateway(answer(state))).text == "Friday in Zürich: sunny — ☀"


@every_gateway
def test_a_response_has_the_form_that_the_gateway_reads(gateway: str, function: LambdaFunction) -> None:
    response = function(GATEWAYS[gateway](call()), wire.Context())
    assert json.loads(json.dumps(response)) == response
    assert type(response["statusCode"]) is int
    assert type(response["body"]) is str
    assert response["isBase64Encoded"] is False
    assert all(type(value) is str for value in response["headers"].values())
    assert response["headers"]["content-type"] == "application/json"


@every_gateway
@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD", "PATCH", "OPTIONS"])
def test_only_post_is_answered_over_every_gateway(gateway: str, method: str, function: LambdaFunction) -> None:
    event = GATEWAYS[gateway](HttpRequest(b"", (("Host", "h"), ("User-Agent", "u")), method))
    response = function(event, wire.Context())
    assert (response["statusCode"], response["headers"]["allow"], response["body"]) == (405, "POST", "")


@every_gateway
def test_a_body_without_a_content_type_comes_as_base64_and_is_read(gateway: str, function: LambdaFunction) -> None:
    event = GATEWAYS[gateway](call().without("content-type"))
    assert event["isBase64Encoded"] or "sam local" in gateway
    assert send(function, event).status == 200


@every_gateway
def test_a_notification_is_accepted_over_every_gateway(gateway: str, function: LambdaFunction) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "reason": "changed"}}
    response = function(GATEWAYS[gateway](gateways.http_request(message)), wire.Context())
    assert (response["statusCode"], response["body"]) == (202, "")
    assert "content-type" not in response["headers"]


@every_gateway
@pytest.mark.parametrize("header", ["Mcp-Method", "Mcp-Name", "MCP-Protocol-Version"])
def test_a_repeated_header_is_refused(gateway: str, header: str, function: LambdaFunction) -> None:
    request = call()
    event = GATEWAYS[gateway](request.with_headers((header.title(), request.header(header))))
    reply = send(function, event)
    assert reply.status == 400
    assert reply.code == HEADER_MISMATCH
    assert header in reply.body["error"]["message"]


@every_gateway
def test_a_header_in_two_spellings_is_refused(gateway: str, function: LambdaFunction) -> None:
    event = GATEWAYS[gateway](call())
    known = next(key for key in event["headers"] if key.lower() == "mcp-method")
    event["headers"] = {**event["headers"], "mCP-mETHOD": event["headers"][known]}
    assert send(function, event).code == HEADER_MISMATCH


@every_gateway
@pytest.mark.parametrize(
    ("header", "value"),
    [("Mcp-Session-Id", "4711"), ("Last-Event-ID", "7"), ("Cookie", "session=4711"), ("X-Http-Method-Override", "GET")],
)
def test_unknown_headers_are_ignored_and_never_echoed(
    gateway: str, header: str, value: str, function: LambdaFunction
) -> None:
    response = function(GATEWAYS[gateway](call().with_headers((header, value))), wire.Context())
    assert response["statusCode"] == 200
    assert not {"mcp-session-id", "set-cookie", "last-event-id"} & response["headers"].keys()
    assert value not in json.dumps(response["headers"])


# Callers

ANN, BEN = {"iss": ISSUER, "sub": "ann", "client_id": "app"}, {"iss": ISSUER, "sub": "ben", "client_id": "app"}
# A client, or a proxy that a client can avoid, may write these headers.
FORGED = (
    ("Authorization", "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4iLCJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUifQ."),
    ("X-Amzn-Oidc-Identity", "ann"),
    ("X-Amzn-Oidc-Data", "eyJzdWIiOiJhbm4ifQ"),
    ("X-Amzn-Oidc-Accesstoken", "eyJzdWIiOiJhbm4ifQ"),
    ("X-Amzn-Requestcontext", '{"authorizer":{"iam":{"accountId":"123456789012","userId":"AROAEXAMPLE:ann"}}}'),
    ("X-Amz-Security-Token", "secret"),
    ("X-Principal", "ann"),
    ("X-Forwarded-User", "ann"),
    ("X-Apigateway-Event", '{"requestContext":{"authorizer":{"claims":{"iss":"https://id.example","sub":"ann"}}}}'),
)


def by_token(event: Event, person: str) -> Event:
    return by_jwt(event, iss=ISSUER, sub=person, client_id="app")


every_authorizer = pytest.mark.parametrize(
    ("mode", "gateway", "by_caller"),
    [("iam", "HTTP API", by_iam), ("iam", "function URL", by_iam), ("jwt", "HTTP API", by_token)],
)


@every_authorizer
def test_only_the_caller_who_began_a_conversation_continues_it(
    mode: str, gateway: str, by_caller: Callable[[Event, str], Event]
) -> None:
    function = deploy(mode)
    state = send(function, by_caller(GATEWAYS[gateway](call()), "ann")).state
    event = GATEWAYS[gateway](answer(state))
    forged_event = GATEWAYS[gateway](answer(state).with_headers(*FORGED))
    assert send(function, by_caller(event, "ben")).error == INVALID_STATE_ERROR
    assert send(function, by_caller(forged_event, "ben")).error == INVALID_STATE_ERROR
    assert "Zürich" in send(function, by_caller(event, "ann")).text


@every_gateway
@pytest.mark.parametrize("mode", ["iam", "jwt"])
@pytest.mark.parametrize("headers", [(), FORGED], ids=["usual headers", "forged headers"])
def test_a_route_without_its_authorizer_refuses_every_caller_without_a_reason(
    mode: str, gateway: str, headers: gateways.Pairs
) -> None:
    reply = send(deploy(mode), GATEWAYS[gateway](call().with_headers(*headers)))
    assert reply.status == 500
    assert reply.error == INTERNAL_ERROR


@every_gateway
@pytest.mark.parametrize("mode", ["iam", "jwt"])
@pytest.mark.parametrize(
    "context",
    [
        {"authorizer": None},
        {"authorizer": {}},
        {"authorizer": []},
        {"authorizer": "ann"},
        {"authorizer": {"iam": None, "jwt": None, "claims": None}},
        {"authorizer": {"lambda": {"sub": "ann", "iss": ISSUER, "accountId": "1", "userId": "ann"}}},
        {"authorizer": {"principalId": "ann", "sub": "ann", "iss": ISSUER}},
        {"authentication": {"iam": {"accountId": "1", "userId": "ann"}}},
        {"accountId": "123456789012", "userId": "ann", "sub": "ann", "iss": ISSUER, "claims": ANN, "iam": ANN},
    ],
)
def test_caller_claims_at_another_place_of_the_event_are_ignored(
    mode: str, gateway: str, context: Mapping[str, Any]
) -> None:
    event = GATEWAYS[gateway](call())
    event["requestContext"] = {**event["requestContext"], **context}
    assert send(deploy(mode), event).error == INTERNAL_ERROR


@every_authorizer
def test_the_caller_of_the_other_mode_does_not_count(
    mode: str, gateway: str, by_caller: Callable[[Event, str], Event]
) -> None:
    other_mode = {"iam": "jwt", "jwt": "iam"}[mode]
    assert send(deploy(other_mode), by_caller(GATEWAYS[gateway](call()), "ann")).error == INTERNAL_ERROR


@pytest.mark.parametrize("gateway", ["HTTP API", "function URL"])
@pytest.mark.parametrize("field", ["accountId", "userId"])
@pytest.mark.parametrize("value", [None, "", 7, ["AROAEXAMPLE:ann"]])
def test_a_signature_without_account_or_user_is_refused(gateway: str, field: str, value: object) -> None:
    event = by_iam(GATEWAYS[gateway](call()), "ann")
    event["requestContext"]["authorizer"]["iam"][field] = value
    assert send(deploy("iam"), event).error == INTERNAL_ERROR


@pytest.mark.parametrize("other_claims", [{**ANN, "client_id": "web"}, {**ANN, "sub": "ann "}, BEN])
def test_a_caller_is_issuer_subject_and_client_together(other_claims: dict[str, str]) -> None:
    function = deploy("jwt")
    state = send(function, by_jwt(GATEWAYS["HTTP API"](call()), **ANN)).state
    event = GATEWAYS["HTTP API"](answer(state))
    assert send(function, by_jwt(event, **other_claims)).error == INVALID_STATE_ERROR
    refreshed = by_jwt(event, **ANN, exp="4102444800", jti="another", scope="weather")
    assert send(function, refreshed).status == 200


def test_a_role_of_the_same_name_in_another_account_is_another_principal() -> None:
    function = deploy("iam")
    state = send(function, by_iam(GATEWAYS["HTTP API"](call()), "ann")).state
    event = by_iam(GATEWAYS["HTTP API"](answer(state)), "ann", account="210987654321")
    assert send(function, event).error == INVALID_STATE_ERROR


def test_two_people_of_one_identity_pool_are_two_callers() -> None:
    """A pool gives all its people one role and one session name; only the identity tells them apart."""

    def by_pool(request: HttpRequest, identity: str) -> Event:
        event = by_iam(GATEWAYS["HTTP API"](request), "CognitoIdentityCredentials")
        pool = {"amr": ["authenticated"], "identityId": identity, "identityPoolId": "eu-central-1:pool"}
        event["requestContext"]["authorizer"]["iam"]["cognitoIdentity"] = pool
        return event

    function = deploy("iam")
    state = send(function, by_pool(call(), "eu-central-1:ann")).state
    assert send(function, by_pool(answer(state), "eu-central-1:ben")).error == INVALID_STATE_ERROR
    assert send(function, by_pool(answer(state), "eu-central-1:ann")).status == 200


@every_gateway
def test_an_open_server_has_no_principals(gateway: str) -> None:
    function = deploy("none")
    state = send(function, GATEWAYS[gateway](call().with_headers(*FORGED))).state
    event = GATEWAYS[gateway](answer(state))
    event["requestContext"]["authorizer"] = {"jwt": {"claims": ANN}, "claims": ANN}
    assert send(function, event).status == 200


def test_only_the_log_shows_why_a_token_was_refused(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="mcp_functions")
    reply = send(deploy("jwt"), by_jwt(GATEWAYS["HTTP API"](call()), iss=ISSUER, sub="", email="ann@example.com"))
    assert reply.status == 401
    assert reply.error == INVALID_TOKEN_ERROR
    assert "token_without_subject" in caplog.text
    assert "ann@example.com" not in caplog.text
