"""CORS: a page in a browser may call only if the operator lists its origin. Every response has security headers.

`function` is a function that allows pages of `ALLOWED_ORIGIN`, once as one Lambda and once behind an endpoint. `send`
sends it an event of API Gateway, `preflight` the question that a browser asks before a page's request.

Without `from __future__ import annotations`, because `Annotated[…]` must be a real object in most authors' modules.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import pytest

from mcp_functions import Progress, serve, tool
from mcp_functions.annotated import Header
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.protocol.errors import ContentTooLarge, InsufficientScope, OutcomeUnknown, TemporarilyUnavailable
from mcp_functions.protocol.messages import Request, Result
from tests.support import gateways, wire
from tests.support.endpoints import make_function
from tests.support.gateways import GATEWAYS, JWT_SETTINGS, HttpRequest
from tests.support.placements import PLACEMENTS, place
from tests.support.settings import make_settings

ALLOWED_ORIGIN = "https://app.example"
OTHER_ORIGIN = "https://evil.example"


@tool
def ship(city: Annotated[str, Header("City")], *, progress: Progress) -> str:
    """Ship something."""
    progress(1)
    return f"shipped to {city}"


@tool
def count(up_to: Annotated[int, Header("Up-To")]) -> str:
    """Count."""
    return str(up_to)


@pytest.fixture(params=PLACEMENTS)
def function(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> LambdaFunction:
    monkeypatch.setenv("MCP_ALLOWED_ORIGINS", f"{ALLOWED_ORIGIN},https://second.example:8443")
    return place(request.param, ship, count)


@pytest.fixture
def closed_function(monkeypatch: pytest.MonkeyPatch) -> LambdaFunction:
    """Return a function that allows no page."""
    monkeypatch.setenv("MCP_ALLOWED_ORIGINS", "")
    return serve(ship, count)


def send(
    function: LambdaFunction,
    message: Any = "",  # noqa: ANN401 - JSON or text
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Send a request, and return the response with its headers in lower case."""
    response = function(wire.event(message, http_method=method, headers=headers or {}), wire.Context("local_all"))
    return {**response, "headers": {name.lower(): value for name, value in response["headers"].items()}}


def preflight(function: LambdaFunction, origin: str = ALLOWED_ORIGIN) -> dict[str, Any]:
    """Ask whether a page of this origin may call."""
    return send(function, method="OPTIONS", headers={"origin": origin, "access-control-request-method": "POST"})


def cors_headers(response: dict[str, Any]) -> dict[str, str]:
    return {name: value for name, value in response["headers"].items() if name.startswith("access-control")}


METADATA_PATH = "/.well-known/oauth-protected-resource"
CALL = wire.message("tools/call", {"name": "ship", "arguments": {"city": "Rome"}})
CITY = {"mcp-param-city": "Rome"}  # the header that repeats the argument


# The preflight


def test_a_preflight_of_an_allowed_page_is_answered_with_every_header_it_may_send(function: LambdaFunction) -> None:
    response = preflight(function)
    assert response["statusCode"] == 204
    assert response["body"] == ""
    assert response["headers"]["access-control-allow-origin"] == ALLOWED_ORIGIN
    assert response["headers"]["access-control-allow-methods"] == "POST, GET, DELETE"
    assert set(response["headers"]["access-control-allow-headers"].split(", ")) == {
        *("accept", "authorization", "content-type"),
        *("mcp-protocol-version", "mcp-method", "mcp-name", "mcp-param-city", "mcp-param-up-to"),
        *("mcp-session-id", "last-event-id"),  # of earlier versions of MCP
        *("baggage", "traceparent", "tracestate"),
    }


def test_a_browser_may_keep_the_answer_to_a_preflight_for_one_origin(function: LambdaFunction) -> None:
    response = preflight(function)
    assert response["headers"]["vary"] == "Origin"
    assert int(response["headers"]["access-control-max-age"]) > 0


def test_a_preflight_needs_no_caller(function: LambdaFunction, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in JWT_SETTINGS.items():
        monkeypatch.setenv(name, value)
    assert preflight(function)["statusCode"] == 204


def test_a_page_that_signs_may_send_its_signature(function: LambdaFunction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_AUTH_MODE", "iam")
    allowed = preflight(function)["headers"]["access-control-allow-headers"]
    assert {"x-amz-content-sha256", "x-amz-date", "x-amz-security-token"} <= set(allowed.split(", "))


@pytest.mark.parametrize(
    "origin",
    [
        OTHER_ORIGIN,
        "null",
        "*",
        "",
        pytest.param(f"{ALLOWED_ORIGIN}/", id="with a slash"),
        pytest.param("https://APP.example", id="in capitals"),
        pytest.param("https://second.example", id="without the port"),
    ],
)
def test_a_page_of_another_origin_gets_no_cors_headers(origin: str, function: LambdaFunction) -> None:
    for response in (preflight(function, origin), send(function, CALL, headers={"origin": origin})):
        assert response["statusCode"] == 403
        assert response["body"] == ""
        assert cors_headers(response) == {}
        assert response["headers"]["vary"] == "Origin"


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"access-control-request-method": "POST"}, id="no origin"),
        pytest.param({"origin": ALLOWED_ORIGIN}, id="no method"),
    ],
)
def test_options_that_is_no_preflight_is_not_allowed(headers: dict[str, str], function: LambdaFunction) -> None:
    response = send(function, method="OPTIONS", headers=headers)
    assert response["statusCode"] == 405
    assert response["headers"]["allow"] == "POST"


def test_no_origin_is_allowed_by_default(closed_function: LambdaFunction) -> None:
    for response in (preflight(closed_function), send(closed_function, CALL, headers={"origin": ALLOWED_ORIGIN})):
        assert response["statusCode"] == 403
        assert cors_headers(response) == {}


def test_without_allowed_origins_responses_do_not_vary_by_origin(closed_function: LambdaFunction) -> None:
    assert "vary" not in send(closed_function, CALL, headers=CITY)["headers"]


@pytest.mark.parametrize("name", GATEWAYS)
def test_a_preflight_over_every_gateway_is_answered(name: str, function: LambdaFunction) -> None:
    headers = (("Host", "h"), ("Origin", ALLOWED_ORIGIN), ("Access-Control-Request-Method", "POST"))
    event = GATEWAYS[name](HttpRequest(b"", headers, "OPTIONS"))
    response = function(event, wire.Context("local_all"))
    assert response["statusCode"] == 204
    assert response["headers"]["access-control-allow-origin"] == ALLOWED_ORIGIN


def test_a_page_of_an_allowed_origin_may_read_the_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (JWT_SETTINGS | {"MCP_ALLOWED_ORIGINS": ALLOWED_ORIGIN}).items():
        monkeypatch.setenv(name, value)
    function = serve(ship)
    event = wire.event("", http_method="GET", headers={"origin": ALLOWED_ORIGIN})
    response = function({**event, "rawPath": METADATA_PATH}, wire.Context())
    assert response["statusCode"] == 200
    assert response["headers"]["access-control-allow-origin"] == ALLOWED_ORIGIN


def test_a_preflight_for_the_metadata_allows_only_get(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (JWT_SETTINGS | {"MCP_ALLOWED_ORIGINS": ALLOWED_ORIGIN}).items():
        monkeypatch.setenv(name, value)
    headers = {"origin": ALLOWED_ORIGIN, "access-control-request-method": "GET"}
    event = wire.event("", http_method="OPTIONS", headers=headers)
    response = serve(ship)({**event, "rawPath": METADATA_PATH}, wire.Context())
    assert response["statusCode"] == 204
    assert response["headers"]["access-control-allow-methods"] == "GET"


# The call


def test_a_page_of_an_allowed_origin_may_read_the_response_and_its_headers(function: LambdaFunction) -> None:
    response = send(function, CALL, headers={"origin": ALLOWED_ORIGIN, **CITY})
    assert response["statusCode"] == 200
    assert cors_headers(response) == {
        "access-control-allow-origin": ALLOWED_ORIGIN,
        "access-control-expose-headers": "mcp-session-id, retry-after, www-authenticate",
    }
    assert response["headers"]["vary"] == "Origin"


@pytest.mark.parametrize(
    "message",
    [
        pytest.param("{", id="no JSON"),
        pytest.param(wire.message("no/such"), id="an unknown method"),
        pytest.param(CALL, id="a call without the header of its argument"),
    ],
)
def test_a_page_of_an_allowed_origin_may_read_an_error(message: object, function: LambdaFunction) -> None:
    response = send(function, message, headers={"origin": ALLOWED_ORIGIN})
    assert response["statusCode"] >= 400
    assert response["headers"]["access-control-allow-origin"] == ALLOWED_ORIGIN


def test_a_client_that_is_no_browser_gets_no_cors_headers(function: LambdaFunction) -> None:
    response = send(function, CALL, headers=CITY)
    assert response["statusCode"] == 200
    assert cors_headers(response) == {}
    assert response["headers"]["vary"] == "Origin"


def test_cors_never_allows_credentials_or_every_origin(function: LambdaFunction) -> None:
    call = send(function, CALL, headers={"origin": ALLOWED_ORIGIN})
    for response in (call, preflight(function), preflight(function, OTHER_ORIGIN)):
        assert "access-control-allow-credentials" not in response["headers"]
        assert "*" not in "".join(response["headers"].values())


# The security headers of every response


PREFLIGHT = {"origin": ALLOWED_ORIGIN, "access-control-request-method": "POST"}
JSON_ONLY = {**CITY, "accept": "application/json"}


@pytest.mark.parametrize(
    ("message", "method", "headers", "status"),
    [
        pytest.param(CALL, "POST", CITY, 200, id="an event stream"),
        pytest.param(CALL, "POST", JSON_ONLY, 200, id="a result"),
        pytest.param(wire.message("tools/list"), "POST", {}, 200, id="a list"),
        pytest.param({"jsonrpc": "2.0", "method": "notifications/x"}, "POST", {}, 202, id="a notification"),
        pytest.param("", "OPTIONS", PREFLIGHT, 204, id="a preflight"),
        pytest.param("{", "POST", {}, 400, id="no JSON"),
        pytest.param(CALL, "POST", {"origin": OTHER_ORIGIN}, 403, id="a foreign page"),
        pytest.param(wire.message("no/such"), "POST", {}, 404, id="no such method"),
        pytest.param("", "GET", {}, 405, id="another method"),
        pytest.param("x", "POST", {"content-type": "text/plain"}, 415, id="another type"),
    ],
)
def test_every_response_has_the_security_headers(
    message: object, method: str, headers: dict[str, str], status: int, function: LambdaFunction
) -> None:
    response = send(function, message, method, headers)
    assert response["statusCode"] == status
    assert_security_headers(response)


def assert_security_headers(response: dict[str, Any]) -> None:
    required = {
        "cache-control": "no-store",
        "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
        "strict-transport-security": "max-age=31536000",
        "x-content-type-options": "nosniff",
    }
    assert required.items() <= response["headers"].items()
    assert not {"set-cookie", "mcp-session-id", "server", "x-powered-by"} & response["headers"].keys()


@pytest.mark.parametrize(
    ("exception", "status"),
    [
        pytest.param(LookupError(), 200, id="a failure of the function"),
        pytest.param(TemporarilyUnavailable("kms:ThrottlingException"), 503, id="a failure of KMS"),
        pytest.param(InsufficientScope(), 403, id="a missing scope"),
        pytest.param(ContentTooLarge(), 413, id="a large body"),
        pytest.param(OutcomeUnknown(), 200, id="an unknown outcome"),
    ],
)
def test_every_error_has_the_security_headers(exception: Exception, status: int) -> None:
    def answer(_request: Request) -> Result:
        raise exception

    function = make_function(make_settings(auth_mode="none"), answer)
    response = function(wire.event(CALL), wire.Context("local_all"))
    assert response["statusCode"] == status
    assert_security_headers(response)


@pytest.mark.parametrize(("path", "status"), [("oauth-protected-resource", 200), ("openid-configuration", 404)])
def test_well_known_documents_have_the_security_headers_too(path: str, status: int) -> None:
    settings = make_settings(auth_mode="jwt", resource_url="https://a.example/mcp")
    function = make_function(settings, lambda _request: pytest.fail("answered"))
    event = wire.event("", http_method="GET") | {"rawPath": f"/.well-known/{path}"}
    response = function(event, wire.Context("local_all"))
    assert response["statusCode"] == status
    assert_security_headers(response)


def test_the_response_to_a_refused_token_is_not_cached() -> None:
    settings = make_settings(auth_mode="jwt", jwt_audiences=("a",), resource_url="https://a.example/mcp")
    function = make_function(settings, lambda _request: pytest.fail("answered"))
    response = function(gateways.by_jwt(wire.event(CALL), iss="i", sub="s"), wire.Context("local_all"))
    assert response["statusCode"] == 401
    assert_security_headers(response)


def test_the_response_to_an_unsigned_request_is_not_cached() -> None:
    settings = make_settings(auth_mode="iam")
    function = make_function(settings, lambda _request: pytest.fail("answered"))
    response = function(wire.event(CALL), wire.Context("local_all"))
    assert response["statusCode"] == 500  # API Gateway lets no unsigned request pass, so the route lacks its authorizer
    assert_security_headers(response)
