"""A conversation runs over every gateway, because each event becomes the same request.

The samples satisfy Powertools' models of AWS's events. The caller is read only from the fields that the authorizer
writes. No `from __future__ import annotations` here, because most authors' modules have none.
"""

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pytest
from aws_lambda_powertools.utilities.parser.models import (
    APIGatewayProxyEventV2Model,
    LambdaFunctionUrlModel,
)
from pydantic import BaseModel

from mcp_functions import Elicit, serve, tool
from mcp_functions.http.gateway import LambdaFunction
from tests.support import gateways, wire
from tests.support.gateways import GATEWAYS, Event, Sent, by_iam, by_jwt

NO_TOKEN = {"code": -32600, "message": "Invalid access token", "data": {"reason": "invalid_token"}}
FROZEN = {"code": -32602, "message": "Invalid or expired requestState", "data": {"reason": "invalid_request_state"}}
NOBODY_KNOWN = {"code": -32603, "message": "Internal error"}
ISSUER = "https://id.example"
MODELS: dict[str, type[BaseModel]] = {
    "HTTP API": APIGatewayProxyEventV2Model,
    "HTTP API, sam local": APIGatewayProxyEventV2Model,
    "function URL": LambdaFunctionUrlModel,
    "HTTP API, base64": APIGatewayProxyEventV2Model,
}
OF_REST_API = {"httpMethod": "POST", "path": "/mcp", "requestContext": {"identity": {}}, "headers": {}, "body": "{}"}
OF_BALANCER = {**OF_REST_API, "requestContext": {"elb": {}}}
every_gateway = pytest.mark.parametrize("name", GATEWAYS)


class City(BaseModel):
    city: str


@tool
def weather(day: str, *, elicit: Elicit) -> str:
    """Return the weather of a day."""
    return f"{day} in {elicit('where', 'Where?', City).city}: sunny — ☀"


@pytest.fixture(scope="module")
def function() -> LambdaFunction:
    return serve(weather)


@pytest.fixture(scope="module")
def deployed_with() -> Callable[[str], LambdaFunction]:
    """Deploy the function once with each AuthMode."""

    @cache
    def deploy(auth_mode: str) -> LambdaFunction:
        function = serve(weather)
        with pytest.MonkeyPatch.context() as patch:
            for variable, value in (gateways.JWT | {"MCP_AUTH_MODE": auth_mode}).items():
                patch.setenv(variable, value)
            function(GATEWAYS["HTTP API"](call()), wire.Context("local-weather"))  # which reads the environment
        return function

    return deploy


def call(day: str = "Friday", **more: Any) -> Sent:  # noqa: ANN401 - JSON values
    return gateways.sent(wire.message("tools/call", {"name": "weather", "arguments": {"day": day}, **more}))


def answered(state: str, **more: Any) -> Sent:  # noqa: ANN401 - JSON values
    answers = {"where": {"action": "accept", "content": {"city": "Zürich"}}}
    return call(inputResponses=answers, requestState=state, **more)


def received(function: LambdaFunction, event: Event) -> tuple[int, dict[str, Any]]:
    response = function(json.loads(json.dumps(event)), wire.Context("local-weather"))
    return response["statusCode"], wire.read(response, "tools/call")


def error(function: LambdaFunction, event: Event) -> tuple[int, dict[str, Any]]:
    status, body = received(function, event)
    return status, body["error"]


# --- the samples --------------------------------------------------------------------------------------------------


@every_gateway
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_the_samples_are_events_to_powertools(name: str, method: str) -> None:
    request = call() if method == "POST" else Sent(b"", (("Host", "h"), ("User-Agent", "u")), method)
    event = GATEWAYS[name](request)
    known = MODELS[name].model_validate(event).model_dump(by_alias=True)
    assert known["headers"] == event["headers"]
    assert not event.keys() - known.keys()


@pytest.mark.parametrize("name", ["HTTP API", "function URL"])
@pytest.mark.parametrize("whose", [lambda event: by_iam(event, "ann"), lambda event: by_jwt(event, sub="ann")])
def test_the_samples_of_callers_are_events_to_powertools(name: str, whose: Callable[[Event], Event]) -> None:
    event = whose(GATEWAYS[name](call()))
    context = MODELS[name].model_validate(event).model_dump(by_alias=True)["requestContext"]
    assert "ann" in json.dumps([context.get("authorizer"), context.get("identity")], default=str)


def test_every_gateway_has_a_sample_and_a_model() -> None:
    assert MODELS.keys() == GATEWAYS.keys()


# --- the conversation ---------------------------------------------------------------------------------------------


@every_gateway
def test_a_conversation_of_two_rounds_runs_over_every_gateway(name: str, function: LambdaFunction) -> None:
    status, asked = received(function, GATEWAYS[name](call()))
    assert (status, asked["result"]["resultType"]) == (200, "input_required")
    status, done = received(function, GATEWAYS[name](answered(asked["result"]["requestState"])))
    assert (status, done["result"]["content"]) == (200, [{"type": "text", "text": "Friday in Zürich: sunny — ☀"}])


def test_a_conversation_may_change_its_gateway_between_rounds(function: LambdaFunction) -> None:
    for first, second in zip(GATEWAYS, [*list(GATEWAYS)[1:], "HTTP API"], strict=True):
        _status, asked = received(function, GATEWAYS[first](call()))
        _status, done = received(function, GATEWAYS[second](answered(asked["result"]["requestState"])))
        assert "Zürich" in done["result"]["content"][0]["text"]


@every_gateway
def test_a_response_has_the_form_that_the_gateway_reads(name: str, function: LambdaFunction) -> None:
    response = function(GATEWAYS[name](call()), wire.Context())
    assert json.loads(json.dumps(response)) == response
    assert type(response["statusCode"]) is int
    assert type(response["body"]) is str
    assert response["isBase64Encoded"] is False
    assert all(type(value) is str for value in response["headers"].values())
    assert response["headers"]["content-type"] == "application/json"


@every_gateway
@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS"])
def test_only_post_is_answered_over_every_gateway(name: str, method: str, function: LambdaFunction) -> None:
    event = GATEWAYS[name](Sent(b"", (("Host", "h"), ("User-Agent", "u")), method))
    response = function(event, wire.Context())
    assert (response["statusCode"], response["headers"]["allow"], response["body"]) == (405, "POST", "")


@every_gateway
def test_a_body_without_a_content_type_comes_as_base64_and_is_read(name: str, function: LambdaFunction) -> None:
    event = GATEWAYS[name](call().without("content-type"))
    assert event["isBase64Encoded"] or "sam local" in name
    assert received(function, event)[0] == 200


@every_gateway
def test_a_notification_is_accepted_over_every_gateway(name: str, function: LambdaFunction) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "reason": "changed"}}
    response = function(GATEWAYS[name](gateways.sent(message)), wire.Context())
    assert (response["statusCode"], response["body"]) == (202, "")
    assert "content-type" not in response["headers"]


@every_gateway
@pytest.mark.parametrize("header", ["Mcp-Method", "Mcp-Name", "MCP-Protocol-Version"])
def test_a_repeated_header_is_ignored(name: str, header: str, function: LambdaFunction) -> None:
    request = call()
    event = GATEWAYS[name](request.with_headers((header.title(), request.header(header))))
    status, told = error(function, event)
    assert (status, told["code"]) == (400, -32020)
    assert header in told["message"]


@every_gateway
def test_a_header_in_two_spellings_is_ignored_too(name: str, function: LambdaFunction) -> None:
    event = GATEWAYS[name](call())
    known = next(key for key in event["headers"] if key.lower() == "mcp-method")
    event["headers"] = {**event["headers"], "mCP-mETHOD": event["headers"][known]}
    assert error(function, event)[1]["code"] == -32020


@every_gateway
@pytest.mark.parametrize(
    ("header", "value"),
    [("Mcp-Session-Id", "4711"), ("Last-Event-ID", "7"), ("Cookie", "session=4711"), ("X-Http-Method-Override", "GET")],
)
def test_unknown_members_are_ignored_and_never_echoed(
    name: str, header: str, value: str, function: LambdaFunction
) -> None:
    response = function(GATEWAYS[name](call().with_headers((header, value))), wire.Context())
    assert response["statusCode"] == 200
    assert not {"mcp-session-id", "set-cookie", "last-event-id"} & response["headers"].keys()
    assert value not in json.dumps(response["headers"])


@pytest.mark.parametrize(
    "event", [{}, {"Records": []}, {"version": "2.0"}, {"source": "aws"}, OF_REST_API, OF_BALANCER]
)
def test_an_event_that_is_not_http_is_not_answered(event: Event, function: LambdaFunction) -> None:
    with pytest.raises(ValueError, match="not an HTTP request"):
        function(event, wire.Context())


# --- who calls ----------------------------------------------------------------------------------------------------

ANN, BEN = {"iss": ISSUER, "sub": "ann", "client_id": "app"}, {"iss": ISSUER, "sub": "ben", "client_id": "app"}
PLACES: list[tuple[str, str, Callable[[Event, str], Event]]] = [
    ("iam", "HTTP API", by_iam),
    ("iam", "function URL", by_iam),
    ("jwt", "HTTP API", lambda event, who: by_jwt(event, iss=ISSUER, sub=who, client_id="app")),
]
every_place = pytest.mark.parametrize(("mode", "name", "whose"), PLACES, ids=[f"{m}, {n}" for m, n, _ in PLACES])
closed = pytest.mark.parametrize("mode", ["iam", "jwt"])

# what a client, or a proxy that a client could pass by, may write into headers
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


@every_place
def test_only_the_caller_who_began_a_conversation_continues_it(
    mode: str, name: str, whose: Callable[[Event, str], Event], deployed_with: Callable[[str], LambdaFunction]
) -> None:
    function, writes = deployed_with(mode), GATEWAYS[name]
    _status, asked = received(function, whose(writes(call()), "ann"))
    again = answered(asked["result"]["requestState"])
    assert error(function, whose(writes(again), "ben")) == (400, FROZEN)
    assert error(function, whose(writes(again.with_headers(*FORGED)), "ben")) == (400, FROZEN)
    status, done = received(function, whose(writes(again.with_headers(("X-Principal", "ben"))), "ann"))
    assert (status, done["result"]["isError"]) == (200, False)


@closed
@every_gateway
@pytest.mark.parametrize("forged", [(), FORGED], ids=["nothing", "headers"])
def test_a_route_without_its_authorizer_refuses_every_caller_without_a_reason(
    mode: str, name: str, forged: gateways.Pairs, deployed_with: Callable[[str], LambdaFunction]
) -> None:
    event = GATEWAYS[name](call().with_headers(*forged))
    assert error(deployed_with(mode), event) == (500, NOBODY_KNOWN)


@closed
@every_gateway
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
def test_a_caller_in_another_place_is_no_caller(
    mode: str, name: str, context: Mapping[str, Any], deployed_with: Callable[[str], LambdaFunction]
) -> None:
    event = GATEWAYS[name](call())
    event["requestContext"] = {**event["requestContext"], **context}
    assert error(deployed_with(mode), event) == (500, NOBODY_KNOWN)


@every_place
def test_the_caller_of_the_other_mode_does_not_count(
    mode: str, name: str, whose: Callable[[Event, str], Event], deployed_with: Callable[[str], LambdaFunction]
) -> None:
    other = "jwt" if mode == "iam" else "iam"
    assert error(deployed_with(other), whose(GATEWAYS[name](call()), "ann")) == (500, NOBODY_KNOWN)


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": ISSUER},
        {"iss": ISSUER, "sub": ""},
        {"iss": ISSUER, "sub": None},
        {"iss": ISSUER, "sub": 7},
        {"iss": ISSUER, "sub": ["ann"]},
        {"iss": ISSUER, "sub": {"ann": 1}},
        {"sub": "ann"},
        {"iss": "", "sub": "ann"},
        {"iss": ISSUER, "client_id": "app", "username": "ann", "email": "ann@example.com"},
        {},
    ],
)
def test_a_token_without_issuer_or_subject_is_refused(
    claims: dict[str, Any], deployed_with: Callable[[str], LambdaFunction]
) -> None:
    assert error(deployed_with("jwt"), by_jwt(GATEWAYS["HTTP API"](call()), **claims)) == (401, NO_TOKEN)


@pytest.mark.parametrize("name", ["HTTP API", "function URL"])
@pytest.mark.parametrize("field", ["accountId", "userId"])
@pytest.mark.parametrize("value", [None, "", 7, ["AROAEXAMPLE:ann"]])
def test_a_signature_without_account_or_user_is_refused(
    name: str, field: str, value: object, deployed_with: Callable[[str], LambdaFunction]
) -> None:
    event = by_iam(GATEWAYS[name](call()), "ann")
    event["requestContext"]["authorizer"]["iam"][field] = value
    assert error(deployed_with("iam"), event) == (500, NOBODY_KNOWN)


@pytest.mark.parametrize("other", [{**ANN, "client_id": "web"}, {**ANN, "sub": "ann "}, BEN])
def test_a_caller_is_issuer_subject_and_client_together(
    other: dict[str, str], deployed_with: Callable[[str], LambdaFunction]
) -> None:
    function, writes = deployed_with("jwt"), GATEWAYS["HTTP API"]
    _status, asked = received(function, by_jwt(writes(call()), **ANN))
    again = answered(asked["result"]["requestState"])
    assert error(function, by_jwt(writes(again), **other)) == (400, FROZEN)
    renewed = by_jwt(writes(again), **ANN, exp="4102444800", jti="another", scope="weather")
    assert received(function, renewed)[0] == 200


def test_a_role_of_the_same_name_in_another_account_is_another_principal(
    deployed_with: Callable[[str], LambdaFunction],
) -> None:
    function, writes = deployed_with("iam"), GATEWAYS["HTTP API"]
    _status, asked = received(function, by_iam(writes(call()), "ann"))
    event = by_iam(writes(answered(asked["result"]["requestState"])), "ann", account="210987654321")
    assert error(function, event) == (400, FROZEN)


def test_two_people_of_one_identity_pool_are_two_callers(deployed_with: Callable[[str], LambdaFunction]) -> None:
    """A pool gives all its people one role and one session name; only the identity tells them apart."""
    function, writes = deployed_with("iam"), GATEWAYS["HTTP API"]

    def of_pool(event: Event, identity: str) -> Event:
        made = by_iam(event, "CognitoIdentityCredentials")
        pool = {"amr": ["authenticated"], "identityId": identity, "identityPoolId": "eu-central-1:pool"}
        made["requestContext"]["authorizer"]["iam"]["cognitoIdentity"] = pool
        return made

    _status, asked = received(function, of_pool(writes(call()), "eu-central-1:ann"))
    again = answered(asked["result"]["requestState"])
    assert error(function, of_pool(writes(again), "eu-central-1:ben")) == (400, FROZEN)
    assert received(function, of_pool(writes(again), "eu-central-1:ann"))[0] == 200


@every_gateway
def test_an_open_server_has_no_principals(name: str, deployed_with: Callable[[str], LambdaFunction]) -> None:
    function, writes = deployed_with("none"), GATEWAYS[name]
    _status, asked = received(function, writes(call().with_headers(*FORGED)))
    event = writes(answered(asked["result"]["requestState"]))
    event["requestContext"]["authorizer"] = {"jwt": {"claims": ANN}, "claims": ANN}
    assert received(function, event)[0] == 200


def test_only_the_log_names_a_misconfiguration(
    deployed_with: Callable[[str], LambdaFunction], caplog: pytest.LogCaptureFixture
) -> None:
    function = deployed_with("jwt")
    assert error(function, GATEWAYS["HTTP API"](call())) == (500, NOBODY_KNOWN)
    assert "AuthMode is jwt, but the event carries no such caller" in caplog.text


def test_only_the_log_shows_why_a_token_was_refused(
    deployed_with: Callable[[str], LambdaFunction], caplog: pytest.LogCaptureFixture
) -> None:
    function = deployed_with("jwt")
    with caplog.at_level("INFO", logger="mcp_functions"):
        nobody = by_jwt(GATEWAYS["HTTP API"](call()), iss=ISSUER, sub="", email="ann@example.com")
        assert error(function, nobody) == (401, NO_TOKEN)
    assert "token_without_subject" in caplog.text
    assert "ann@example.com" not in caplog.text
