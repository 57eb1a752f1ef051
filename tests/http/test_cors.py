"""Pages in browsers: none may call, unless the operator lists their origin; and what every response carries.

No `from __future__ import annotations` here: the functions below are read as an author writes them.
"""

from typing import Annotated, Any, Literal

import pytest

from mcp_functions import Header, Progress, serve, tool
from mcp_functions.http.exchange import Endpoint
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.protocol.errors import ContentTooLarge, InsufficientScope, OutcomeUnknown, TemporarilyUnavailable
from mcp_functions.protocol.messages import Request, Result
from mcp_functions.settings import Settings
from tests.support import gateways, wire
from tests.support.gateways import GATEWAYS, JWT_SETTINGS, HttpRequest
from tests.support.placements import PLACEMENTS, place

OURS, OTHER = "https://app.example", "https://evil.example"
NAMES = {"accept", "authorization", "content-type", "mcp-method", "mcp-name", "mcp-protocol-version"}


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
    monkeypatch.setenv("MCP_ALLOWED_ORIGINS", f"{OURS},https://second.example:8443")
    return place(request.param, ship, count)


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> LambdaFunction:
    monkeypatch.setenv("MCP_ALLOWED_ORIGINS", "")
    return serve(ship, count)


def send(function: LambdaFunction, sent: Any = "", method: str = "POST", **headers: str | None) -> dict[str, Any]:  # noqa: ANN401
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    response = function(wire.event(sent, http_method=method, headers=named), wire.Context("local_all"))
    return {**response, "headers": {name.lower(): value for name, value in response["headers"].items()}}


def preflight(function: LambdaFunction, origin: str | None = OURS, **headers: str | None) -> dict[str, Any]:
    asking = {"access_control_request_method": "POST", "access_control_request_headers": "authorization,mcp-method"}
    return send(function, "", "OPTIONS", **{"origin": origin, **asking, **headers})


def shared(response: dict[str, Any]) -> dict[str, str]:
    return {name: value for name, value in response["headers"].items() if name.startswith("access-control")}


CALL = wire.message("tools/call", {"name": "ship", "arguments": {"city": "Rome"}})


# --- the preflight ------------------------------------------------------------------------------------------------


def test_a_page_of_ours_may_ask_and_learns_every_header_by_name(function: LambdaFunction) -> None:
    response = preflight(function)
    assert (response["statusCode"], response["body"]) == (204, "")
    assert response["headers"]["access-control-allow-origin"] == OURS
    assert response["headers"]["access-control-allow-methods"] == "POST, GET, DELETE"
    allowed = response["headers"]["access-control-allow-headers"].split(", ")
    traces = {"baggage", "traceparent", "tracestate"}
    assert set(allowed) == NAMES | traces | {"last-event-id", "mcp-session-id", "mcp-param-city", "mcp-param-up-to"}
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
    "origin", [OTHER, "null", "*", "", f"{OURS}/", "https://APP.example", "https://second.example"]
)
def test_a_page_of_another_origin_gets_no_cors_headers(origin: str, function: LambdaFunction) -> None:
    for response in (preflight(function, origin), send(function, CALL, origin=origin)):
        assert (response["statusCode"], response["body"], shared(response)) == (403, "", {})
        assert response["headers"]["vary"] == "Origin"


@pytest.mark.parametrize("missing", ["origin", "access_control_request_method"])
def test_options_that_is_no_preflight_is_not_allowed(missing: str, function: LambdaFunction) -> None:
    response = preflight(function, **{missing: None})
    assert (response["statusCode"], response["headers"]["allow"]) == (405, "POST")


def test_no_origin_is_allowed_by_default(closed: LambdaFunction) -> None:
    for response in (preflight(closed), send(closed, CALL, origin=OURS)):
        assert (response["statusCode"], shared(response)) == (403, {})
    assert "vary" not in send(closed, CALL, mcp_param_city="Rome")["headers"]


@pytest.mark.parametrize("name", GATEWAYS)
def test_a_preflight_over_every_gateway(name: str, function: LambdaFunction) -> None:
    asked = (("Host", "h"), ("Origin", OURS), ("Access-Control-Request-Method", "POST"))
    event = GATEWAYS[name](HttpRequest(b"", asked, "OPTIONS"))
    response = function(event, wire.Context("local_all"))
    assert (response["statusCode"], response["headers"]["access-control-allow-origin"]) == (204, OURS)


def test_metadata_may_be_read_by_a_page_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (JWT_SETTINGS | {"MCP_ALLOWED_ORIGINS": OURS}).items():
        monkeypatch.setenv(name, value)
    function, path = serve(ship), {"rawPath": "/.well-known/oauth-protected-resource"}
    asked = {"origin": OURS, "access-control-request-method": "GET"}
    response = function({**wire.event("", http_method="OPTIONS", headers=asked), **path}, wire.Context())
    assert (response["statusCode"], response["headers"]["access-control-allow-methods"]) == (204, "GET")
    response = function({**wire.event("", http_method="GET", headers={"origin": OURS}), **path}, wire.Context())
    assert (response["statusCode"], response["headers"]["access-control-allow-origin"]) == (200, OURS)


# --- the call -----------------------------------------------------------------------------------------------------


def test_a_page_of_an_allowed_origin_may_read_the_response_and_its_headers(function: LambdaFunction) -> None:
    response = send(function, CALL, origin=OURS, mcp_param_city="Rome")
    assert response["statusCode"] == 200
    assert shared(response) == {
        "access-control-allow-origin": OURS,
        "access-control-expose-headers": "mcp-session-id, retry-after, www-authenticate",
    }
    assert response["headers"]["vary"] == "Origin"


def test_an_error_may_be_read_too(function: LambdaFunction) -> None:
    for sent in ("{", wire.message("no/such"), CALL):
        response = send(function, sent, origin=OURS)
        assert response["statusCode"] >= 400
        assert response["headers"]["access-control-allow-origin"] == OURS


def test_a_client_that_is_no_browser_gets_no_cors_headers(function: LambdaFunction) -> None:
    response = send(function, CALL, mcp_param_city="Rome")
    assert (response["statusCode"], shared(response), response["headers"]["vary"]) == (200, {}, "Origin")


def test_no_page_is_ever_allowed_credentials_or_everything(function: LambdaFunction) -> None:
    for response in (preflight(function), send(function, CALL, origin=OURS), preflight(function, OTHER)):
        assert "access-control-allow-credentials" not in response["headers"]
        assert "*" not in "".join(response["headers"].values())


# --- what every response carries ----------------------------------------------------------------------------------


def every_response() -> list[Any]:
    return [
        pytest.param(CALL, "POST", {"mcp-param-city": "Rome"}, 200, id="an event stream"),
        pytest.param(CALL, "POST", {"mcp-param-city": "Rome", "accept": "application/json"}, 200, id="a result"),
        pytest.param(wire.message("tools/list"), "POST", {}, 200, id="a list"),
        pytest.param({"jsonrpc": "2.0", "method": "notifications/x"}, "POST", {}, 202, id="a notification"),
        pytest.param("", "OPTIONS", {"origin": OURS, "access-control-request-method": "POST"}, 204, id="a preflight"),
        pytest.param("{", "POST", {}, 400, id="no JSON"),
        pytest.param(CALL, "POST", {"origin": OTHER}, 403, id="a foreign page"),
        pytest.param(wire.message("no/such"), "POST", {}, 404, id="no such method"),
        pytest.param("", "GET", {}, 405, id="another method"),
        pytest.param("x", "POST", {"content-type": "text/plain"}, 415, id="another type"),
    ]


@pytest.mark.parametrize(("sent", "method", "headers", "status"), every_response())
def test_no_response_is_stored_sniffed_framed_or_run(
    sent: Any,  # noqa: ANN401 - a message or text
    method: str,
    headers: dict[str, str],
    status: int,
    function: LambdaFunction,
) -> None:
    response = function(wire.event(sent, http_method=method, headers=headers), wire.Context("local_all"))
    assert response["statusCode"] == status
    check_headers(response)


def check_headers(response: dict[str, Any]) -> None:
    safe = {
        "cache-control": "no-store",
        "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
        "strict-transport-security": "max-age=31536000",
        "x-content-type-options": "nosniff",
    }
    assert {name: response["headers"].get(name) for name in safe} == safe
    assert not {"set-cookie", "mcp-session-id", "server", "x-powered-by"} & response["headers"].keys()


@pytest.mark.parametrize(
    ("raised", "status"),
    [
        (LookupError(), 200),
        (TemporarilyUnavailable("kms:ThrottlingException"), 503),
        (InsufficientScope("work:write", "Bearer"), 403),
        (ContentTooLarge(), 413),
        (OutcomeUnknown(), 200),
    ],
)
def test_no_error_is_stored_sniffed_framed_or_run_either(raised: Exception, status: int) -> None:
    def answer(_request: Request) -> Result:
        raise raised

    endpoint = Endpoint(Settings(stack="local", auth_mode="none"), answer)
    response = LambdaFunction(lambda _name, _now: endpoint)(wire.event(CALL), wire.Context("local_all"))
    assert response["statusCode"] == status
    check_headers(response)


@pytest.mark.parametrize(("path", "status"), [("oauth-protected-resource", 200), ("openid-configuration", 404)])
def test_well_known_documents_have_the_security_headers_too(path: str, status: int) -> None:
    found = Settings(stack="local", auth_mode="jwt", resource_url="https://a.example/mcp")
    documents: dict[str, dict[str, Any]] = {"/.well-known/oauth-protected-resource": {}}
    endpoint = Endpoint(found, lambda _request: pytest.fail("answered"), documents)
    event = wire.event("", http_method="GET") | {"rawPath": f"/.well-known/{path}"}
    response = LambdaFunction(lambda _name, _now: endpoint)(event, wire.Context("local_all"))
    assert response["statusCode"] == status
    check_headers(response)


@pytest.mark.parametrize("mode", ["iam", "jwt"])
def test_a_refusal_of_the_caller_is_not_stored_either(mode: Literal["iam", "jwt"]) -> None:
    settings = Settings(stack="local", auth_mode=mode, jwt_audiences=("a",), resource_url="https://a.example/mcp")
    function = LambdaFunction(lambda _name, _now: Endpoint(settings, lambda _request: pytest.fail("answered")))
    event = gateways.by_jwt(wire.event(CALL), iss="i", sub="s") if mode == "jwt" else wire.event(CALL)
    response = function(event, wire.Context("local_all"))
    assert response["statusCode"] == (401 if mode == "jwt" else 500)
    check_headers(response)
