"""`check_claims` checks the claims of an access token whose signature API Gateway has verified.

`validate` checks valid claims with some changes, and `reason` returns why the token is refused. API Gateway passes a
claim as text: a list of audiences arrives as "[a b]", with blanks and without quotes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions import settings
from mcp_functions.http import access_tokens
from mcp_functions.protocol.errors import Unauthorized
from mcp_functions.protocol.messages import Principal
from tests.support.gateways import JWT_SETTINGS

if TYPE_CHECKING:
    from mcp_functions.protocol.messages import Identity

NOW = 1_785_000_000.0
SETTINGS = settings.Settings(
    {"MCP_STACK": "shop", **JWT_SETTINGS, "MCP_JWT_AUDIENCE": "https://mcp.example/mcp,7example"}
)
VALID_CLAIMS: dict[str, Any] = {
    "iss": "https://id.example",
    "sub": "ann",
    "aud": "https://mcp.example/mcp",
    "client_id": "app",
    "exp": "1785000001",
}
ABSENT = object()  # a claim that the token does not have


def validate(**changes: object) -> Identity:
    claims = VALID_CLAIMS | changes
    present = {name: value for name, value in claims.items() if value is not ABSENT}
    return access_tokens.check_claims(present, {}, SETTINGS, NOW)


def reason(**changes: object) -> str:
    """Assert that the token is refused, and return the reason."""
    with pytest.raises(Unauthorized) as caught:
        validate(**changes)
    return caught.value.reason


def test_a_valid_token_names_its_principal_and_its_scopes() -> None:
    token = validate(scope="work:read work:write")
    assert token.principal == Principal("https://id.example", "ann", "app")
    assert token.scopes == {"work:read", "work:write"}


@pytest.mark.parametrize(
    "aud",
    [
        "https://mcp.example/mcp",
        "7example",
        pytest.param("[a https://mcp.example/mcp]", id="a list, as API Gateway writes it"),
        pytest.param(["7example"], id="a list"),
    ],
)
def test_one_audience_of_this_server_is_enough(aud: object) -> None:
    validate(aud=aud)


@pytest.mark.parametrize(
    "aud",
    ["https://other.example/mcp", "https://mcp.example", "https://mcp.example/mcp/", "https://mcp.example/mcp/add"],
)
def test_a_token_for_another_audience_is_refused(aud: str) -> None:
    assert reason(aud=aud) == "token_audience"


@pytest.mark.parametrize("aud", ["https://mcp.example/mcp 7example", "x,7example", "[x,7example]", "[]"])
def test_a_list_of_audiences_in_another_notation_is_refused(aud: str) -> None:
    assert reason(aud=aud) == "token_audience"


@pytest.mark.parametrize("aud", ["", None, 7, True, [], ["x"], [7], {"7example": 1}])
def test_a_malformed_audience_is_refused(aud: object) -> None:
    assert reason(aud=aud) == "token_audience"


def test_audiences_are_compared_with_their_case() -> None:
    assert reason(aud="HTTPS://mcp.example/mcp") == "token_audience"


def test_the_client_replaces_an_absent_audience() -> None:
    # Amazon Cognito writes no `aud` into an access token, but the client that it was issued to.
    validate(aud=ABSENT, client_id="7example")


@pytest.mark.parametrize("client_id", ["another", ABSENT], ids=["another client", "no client"])
def test_only_a_known_client_replaces_an_absent_audience(client_id: object) -> None:
    assert reason(aud=ABSENT, client_id=client_id) == "token_audience"


@pytest.mark.parametrize("aud", ["another", ""])
def test_the_client_does_not_replace_another_audience(aud: str) -> None:
    assert reason(aud=aud, client_id="7example") == "token_audience"


@pytest.mark.parametrize("iss", ["https://id.example/", "http://id.example", "https://ID.example"])
def test_a_token_of_another_issuer_is_refused(iss: str) -> None:
    assert reason(iss=iss) == "token_issuer"


@pytest.mark.parametrize("iss", ["", ABSENT, None, 7, ["https://id.example"]])
def test_a_token_without_an_issuer_is_refused(iss: object) -> None:
    assert reason(iss=iss) == "token_issuer"


@pytest.mark.parametrize("sub", ["", ABSENT, None, 7, ["ann"]])
def test_a_token_without_a_subject_is_refused(sub: object) -> None:
    assert reason(sub=sub) == "token_without_subject"


# Issuers name the use of a token in `token_use` (Amazon Cognito) or in `typ` (Keycloak, RFC 9068).


@pytest.mark.parametrize("claim", [{"token_use": "id"}, {"typ": "ID"}, {"typ": "Refresh"}, {"typ": "Offline"}])
def test_a_token_that_is_not_for_access_is_refused(claim: dict[str, str]) -> None:
    assert reason(**claim) == "token_use"


@pytest.mark.parametrize("claim", [{"token_use": "access"}, {"typ": "Bearer"}, {"typ": "at+jwt"}])
def test_a_token_may_say_that_it_is_for_access(claim: dict[str, str]) -> None:
    validate(**claim)


@pytest.mark.parametrize("exp", ["1785000001", "1.785000001e+09", 1785000001, 1785000000.5])
def test_a_token_is_valid_until_it_expires(exp: object) -> None:
    validate(exp=exp)


@pytest.mark.parametrize("exp", ["1785000000", 1785000000, "1784999999", "0", "-1"])
def test_a_token_that_has_expired_is_refused(exp: object) -> None:
    assert reason(exp=exp) == "token_expired"


@pytest.mark.parametrize("exp", [ABSENT, None, "", "nan", "never", "soon 2999", "Sat Jul 25 17:20:00 UTC 2026", True])
def test_a_token_whose_expiry_is_absent_or_no_number_is_refused(exp: object) -> None:
    assert reason(exp=exp) == "token_expired"


def test_the_client_does_not_see_why_its_token_is_refused() -> None:
    with pytest.raises(Unauthorized) as caught:
        validate(aud="hunter2")
    error = caught.value
    assert (error.code, error.status, error.message) == (-32600, 401, "Invalid access token")
    assert error.data == {"reason": "invalid_token"}
    assert error.headers == {
        "www-authenticate": 'Bearer error="invalid_token", '
        'resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp"'
    }
    assert "hunter2" not in str(error)
