"""The principal of a request comes from the authorizer, and never from a value that a client can write.

`identify` reads an event with these members under `requestContext.authorizer`, as a function with this AuthMode does.
test_events.py sends such events to a function. With AuthMode oauth, users sign in through the "front".
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Literal

import pytest

from mcp_functions import serve, serve_catalog, settings, tool
from mcp_functions.handlers import catalog
from mcp_functions.http import events, identity
from mcp_functions.protocol.errors import Misconfigured, Unauthorized
from mcp_functions.protocol.messages import Principal
from tests.support import wire
from tests.support.gateways import JWT_SETTINGS

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_functions.http.gateway import LambdaFunction
    from mcp_functions.protocol.messages import Identity

Mode = Literal["iam", "jwt", "oauth", "none"]

NOW = 1_785_000_000.0
IAM = {"accountId": "123456789012", "userId": "AROAX:ann", "userArn": "arn:aws:sts::123456789012:assumed-role/r/ann"}
FRONT_SETTINGS = {"MCP_OAUTH_URL": "https://mcp.example", "MCP_OAUTH_CLIENT_ID": "app"}
CLAIMS = {
    "iss": "https://id.example",
    "sub": "ann",
    "client_id": "app",
    "aud": JWT_SETTINGS["MCP_JWT_AUDIENCE"],
    "exp": str(int(NOW) + 60),
    "jti": "secret",
}


def identify(authorizer: Any, mode: Mode, **variables: str) -> Identity:  # noqa: ANN401 - JSON
    event = wire.event("{}", context={"authorizer": authorizer})
    environment = {"MCP_STACK": "shop", **JWT_SETTINGS, **FRONT_SETTINGS, "MCP_AUTH_MODE": mode, **variables}
    return identity.identify(events.read(event, wire.Context(), NOW), settings.Settings(environment), NOW)


def token(**changes: object) -> dict[str, Any]:
    """Write what the authorizer tells of a valid token with some changed claims."""
    return {"jwt": {"claims": {**CLAIMS, **changes}}}


def test_the_principal_of_an_iam_caller_is_account_and_user_id() -> None:
    assert identify({"iam": IAM}, "iam").principal == Principal("aws:iam", "123456789012/AROAX:ann", "")


def test_the_principal_of_a_token_is_issuer_subject_and_client() -> None:
    assert identify(token(), "jwt").principal == Principal("https://id.example", "ann", "app")


def test_behind_the_sign_in_front_the_prefix_of_the_provider_is_removed_from_a_scope() -> None:
    """Cognito writes the resource server's identifier before each scope, and Entra ID writes nothing."""
    prefix = "https://mcp.example/mcp/"
    authorizer = token(scope=f"openid {prefix}work:write work:read")
    with_front = identify(authorizer, "oauth", MCP_OAUTH_SCOPE_PREFIX=prefix)
    assert with_front.scopes == {"openid", "work:write", "work:read"}
    without_front = identify(authorizer, "jwt", MCP_OAUTH_SCOPE_PREFIX=prefix)
    assert without_front.scopes == {"openid", f"{prefix}work:write", "work:read"}


def test_behind_the_sign_in_front_the_principal_is_issuer_and_subject() -> None:
    """Every host has a token of one client, the front's: a person may go on from another device."""
    assert identify(token(), "oauth").principal == Principal("https://id.example", "ann", "")


@pytest.mark.parametrize("claim", ["nonce", "at_hash", "c_hash", "s_hash"])
def test_behind_the_sign_in_front_an_id_token_is_refused(claim: str) -> None:
    with pytest.raises(Unauthorized) as caught:
        identify(token(**{claim: "x"}), "oauth")
    assert caught.value.reason == "token_use"


def test_behind_the_sign_in_front_an_access_token_of_keycloak_may_have_a_nonce() -> None:
    assert identify(token(nonce="x", typ="Bearer"), "oauth").principal


@pytest.mark.parametrize("claims", [{"client_id": "another"}, {"client_id": None}, {"client_id": "", "cid": "another"}])
def test_behind_the_sign_in_front_a_token_of_another_client_is_refused_if_the_client_binds_tokens(
    claims: dict[str, Any],
) -> None:
    with pytest.raises(Unauthorized) as caught:
        identify(token(**claims), "oauth", MCP_OAUTH_BINDING="client_id")
    assert caught.value.reason == "token_client"


def test_behind_the_sign_in_front_a_route_without_its_authorizer_refuses_every_caller() -> None:
    with pytest.raises(Misconfigured):
        identify({"oauth": {"claims": CLAIMS}}, "oauth")


@pytest.mark.parametrize(
    ("claims", "client"),
    [
        ({}, ""),
        ({"azp": "web"}, "web"),
        ({"client_id": "", "azp": "w"}, "w"),
        ({"cid": "okta"}, "okta"),
        ({"appid": "entra"}, "entra"),
        ({"client_id": "first", "azp": "second", "cid": "third"}, "first"),
    ],
)
def test_the_client_is_the_one_that_the_issuer_names_or_none(claims: dict[str, str], client: str) -> None:
    assert identify(token(**{"client_id": None, **claims}), "jwt").principal == Principal(
        "https://id.example", "ann", client
    )


def test_a_refreshed_token_is_the_same_principal() -> None:
    refreshed = token(jti="another", exp="1785009000", scope="work:write")
    assert identify(refreshed, "jwt").principal == identify(token(), "jwt").principal


def test_without_authentication_no_event_has_a_principal() -> None:
    found = identify({"iam": IAM, **token(scope="work:write")}, "none")
    assert found.principal is None
    assert found.scopes == frozenset()


@pytest.mark.parametrize("mode", ["iam", "jwt"])
@pytest.mark.parametrize(
    "authorizer",
    [
        None,
        {"iam": {}},
        {"iam": {**IAM, "accountId": 123456789012}},
        {"iam": {**IAM, "userId": ["AROAX:ann"]}},
        {"jwt": None},
        {"jwt": {}},
        {"jwt": {"claims": None}},
        {"jwt": {"claims": "ann"}},
    ],
)
def test_the_log_tells_the_operator_that_a_route_has_no_authorizer(
    authorizer: Any,  # noqa: ANN401 - JSON
    mode: Literal["iam", "jwt"],
) -> None:
    with pytest.raises(Misconfigured) as caught:
        identify(authorizer, mode)
    expected = f"AuthMode is {mode}, but the event carries no such caller: the route has no authorizer"
    assert caught.value.reason == expected


@tool
def touch() -> str:
    return "touched"


@pytest.fixture(params=["a function", "the endpoint"])
def function(request: pytest.FixtureRequest, tmp_path: Path) -> LambdaFunction:
    if request.param == "a function":
        return serve(touch)
    (tmp_path / "catalog.json").write_text(json.dumps(catalog.build([touch], "touch")), encoding="utf-8")
    return serve_catalog(tmp_path / "catalog.json")


def warnings_of_two_requests(
    function: LambdaFunction, caplog: pytest.LogCaptureFixture, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    for name, value in (JWT_SETTINGS | {"MCP_AUTH_MODE": mode}).items():
        monkeypatch.setenv(name, value)
    with caplog.at_level(logging.WARNING, logger="mcp_functions"):
        for _ in range(2):
            function(wire.event(wire.message("server/discover")), wire.Context("local_touch"))
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_a_container_warns_once_that_every_caller_may_call(
    function: LambdaFunction, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = "AuthMode is none: anyone may call, and anyone who holds a requestState may use it"
    assert warnings_of_two_requests(function, caplog, "none", monkeypatch) == [expected]


@pytest.mark.parametrize("mode", ["iam", "jwt"])
def test_a_closed_server_logs_no_warning(
    mode: Literal["iam", "jwt"],
    function: LambdaFunction,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert warnings_of_two_requests(function, caplog, mode, monkeypatch) == []
