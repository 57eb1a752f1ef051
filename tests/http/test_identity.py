"""The principal comes from the authorizer and never from a value that a client can write."""

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
from tests.support.gateways import JWT

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_functions.http.gateway import LambdaFunction
    from mcp_functions.protocol.messages import Identity

Mode = Literal["iam", "jwt", "oauth", "none"]

NOW = 1_785_000_000.0
IAM = {"accountId": "123456789012", "userId": "AROAX:ann", "userArn": "arn:aws:sts::123456789012:assumed-role/r/ann"}
FRONT = {"MCP_OAUTH_URL": "https://mcp.example", "MCP_OAUTH_CLIENT_ID": "app"}
CLAIMS = {
    "iss": "https://id.example",
    "sub": "ann",
    "client_id": "app",
    "aud": JWT["MCP_JWT_AUDIENCE"],
    "exp": str(int(NOW) + 60),
    "jti": "secret",
}


def caller(authorizer: Any, mode: Mode, **sent: str) -> Identity:  # noqa: ANN401 - whatever stands there
    event = wire.event("{}", context={"authorizer": authorizer}, headers=sent)
    found = settings.read({"MCP_STACK": "shop", **JWT, **FRONT, "MCP_AUTH_MODE": mode})
    return identity.identify(events.read(event), found, NOW)


def of(authorizer: Any, mode: Mode, **sent: str) -> Principal | None:  # noqa: ANN401 - whatever stands there
    return caller(authorizer, mode, **sent).principal


def test_iam_names_account_and_user_id() -> None:
    assert of({"iam": IAM}, "iam") == Principal("aws:iam", "123456789012/AROAX:ann", "")


def test_a_token_names_issuer_subject_and_client() -> None:
    assert of({"jwt": {"claims": CLAIMS}}, "jwt") == Principal("https://id.example", "ann", "app")


def test_behind_the_front_a_scope_loses_the_prefix_that_the_provider_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cognito writes the resource server's identifier before each scope, and Entra ID writes nothing."""
    monkeypatch.setitem(FRONT, "MCP_OAUTH_SCOPE_PREFIX", "https://mcp.example/mcp/")
    token = {"jwt": {"claims": {**CLAIMS, "scope": "openid https://mcp.example/mcp/work:write work:read"}}}
    assert caller(token, "oauth").scopes == {"openid", "work:write", "work:read"}
    assert caller(token, "jwt").scopes == {"openid", "https://mcp.example/mcp/work:write", "work:read"}


def test_behind_the_front_a_token_names_issuer_and_subject() -> None:
    """Every host has a token of one client, the front's: a person may go on from another device."""
    assert of({"jwt": {"claims": CLAIMS}}, "oauth") == Principal("https://id.example", "ann", "")


@pytest.mark.parametrize("claim", ["nonce", "at_hash", "c_hash", "s_hash"])
def test_behind_the_front_an_id_token_is_no_access_token(claim: str) -> None:
    with pytest.raises(Unauthorized) as refused:
        of({"jwt": {"claims": {**CLAIMS, claim: "x"}}}, "oauth")
    assert refused.value.reason == "token_use"
    says_access = {**CLAIMS, claim: "x", "typ": "Bearer"}  # Keycloak's access tokens have the nonce too
    assert of({"jwt": {"claims": says_access}}, "oauth")


@pytest.mark.parametrize("claims", [{"client_id": "another"}, {"client_id": None}, {"client_id": "", "cid": "another"}])
def test_behind_the_front_a_token_of_another_client_is_refused_where_the_client_binds(claims: dict[str, Any]) -> None:
    event = wire.event("{}", context={"authorizer": {"jwt": {"claims": {**CLAIMS, **claims}}}})
    environment = {"MCP_STACK": "shop", **JWT, **FRONT, "MCP_AUTH_MODE": "oauth", "MCP_OAUTH_BINDING": "client_id"}
    with pytest.raises(Unauthorized) as refused:
        identity.identify(events.read(event), settings.read(environment), NOW)
    assert refused.value.reason == "token_client"


def test_behind_the_front_a_route_without_its_authorizer_answers_nobody() -> None:
    with pytest.raises(Misconfigured):
        of({"oauth": {"claims": CLAIMS}}, "oauth")


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
    without = {name: value for name, value in CLAIMS.items() if name != "client_id"}
    found = of({"jwt": {"claims": without | claims}}, "jwt")
    assert found == Principal("https://id.example", "ann", client)


def test_a_refreshed_token_is_the_same_principal() -> None:
    again = {**CLAIMS, "jti": "another", "exp": "1785009000", "scope": "work:write"}
    assert of({"jwt": {"claims": CLAIMS}}, "jwt") == of({"jwt": {"claims": again}}, "jwt")


def test_without_authentication_no_event_has_a_principal() -> None:
    found = caller({"iam": IAM, "jwt": {"claims": CLAIMS | {"scope": "work:write"}}}, "none")
    assert (found.principal, found.scopes) == (None, frozenset())


@pytest.mark.parametrize("mode", ["iam", "jwt"])
@pytest.mark.parametrize(
    "authorizer",
    [
        None,
        {},
        [],
        "ann",
        {"lambda": {"sub": "ann"}},
        {"iam": None},
        {"iam": {}},
        {"iam": {**IAM, "userId": ""}},
        {"iam": {**IAM, "accountId": None}},
        {"jwt": None},
        {"jwt": {}},
        {"jwt": {"claims": None}},
        {"jwt": {"claims": "ann"}},
        {"claims": CLAIMS},
    ],
)
def test_a_route_without_its_authorizer_refuses_every_caller(authorizer: Any, mode: Literal["iam", "jwt"]) -> None:  # noqa: ANN401
    with pytest.raises(Misconfigured) as caught:
        of(authorizer, mode)
    expected = f"AuthMode is {mode}, but the event carries no such caller: the route has no authorizer"
    assert caught.value.reason == expected


def test_the_other_modes_caller_does_not_count() -> None:
    with pytest.raises(Misconfigured):
        of({"iam": IAM}, "jwt")
    with pytest.raises(Misconfigured):
        of({"jwt": {"claims": CLAIMS}}, "iam")


def test_headers_never_name_the_principal() -> None:
    with pytest.raises(Misconfigured):
        of(None, "jwt", authorization="Bearer eyJ", **{"x-amzn-oidc-identity": "ann"})


@tool
def touch() -> str:
    return "touched"


@pytest.fixture(params=["a function", "the endpoint"])
def function(request: pytest.FixtureRequest, tmp_path: Path) -> LambdaFunction:
    if request.param == "a function":
        return serve(touch)
    (tmp_path / "catalog.json").write_text(json.dumps(catalog.build([touch], "touch")), encoding="utf-8")
    return serve_catalog(tmp_path / "catalog.json")


def said(
    function: LambdaFunction, caplog: pytest.LogCaptureFixture, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    for name, value in (JWT | {"MCP_AUTH_MODE": mode}).items():
        monkeypatch.setenv(name, value)
    with caplog.at_level(logging.WARNING, logger="mcp_functions"):
        for _ in range(2):
            function(wire.event(wire.message("server/discover")), wire.Context("local_touch"))
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_a_container_warns_once_that_every_caller_may_call(
    function: LambdaFunction, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = "AuthMode is none: anyone may call, and anyone who holds a requestState may use it"
    assert said(function, caplog, "none", monkeypatch) == [expected]


@pytest.mark.parametrize("mode", ["iam", "jwt"])
def test_a_closed_server_has_nothing_to_say(
    mode: Literal["iam", "jwt"],
    function: LambdaFunction,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert said(function, caplog, mode, monkeypatch) == []
