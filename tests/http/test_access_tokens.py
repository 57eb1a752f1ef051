"""A verified token is looked at again: whose it is, for whom, for what, until when."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_functions import settings
from mcp_functions.http import access_tokens
from mcp_functions.protocol.errors import Unauthorized
from mcp_functions.protocol.messages import Principal
from tests.support.gateways import JWT

NOW = 1_785_000_000.0
FOUND = settings.read({"MCP_STACK": "shop", **JWT, "MCP_JWT_AUDIENCE": "https://mcp.example/mcp,7example"})
GOOD: dict[str, Any] = {
    "iss": "https://id.example",
    "sub": "ann",
    "aud": "https://mcp.example/mcp",
    "client_id": "app",
    "exp": "1785000001",
}


def refused(**changed: object) -> str | None:
    claims = {name: value for name, value in (GOOD | changed).items() if value is not ...}
    try:
        access_tokens.check_claims(claims, {}, FOUND, NOW)
    except Unauthorized as error:
        return error.reason
    return None


def test_a_valid_token_names_its_principal_and_its_scopes() -> None:
    found = access_tokens.check_claims({**GOOD, "scope": "work:read work:write"}, {}, FOUND, NOW)
    assert found.principal == Principal("https://id.example", "ann", "app")
    assert found.scopes == {"work:read", "work:write"}


@pytest.mark.parametrize("aud", ["https://mcp.example/mcp", "7example", "[a https://mcp.example/mcp]", ["7example"]])
def test_one_audience_of_ours_is_enough(aud: object) -> None:
    assert refused(aud=aud) is None


@pytest.mark.parametrize(
    "aud",
    [
        *(
            "https://other.example/mcp",
            "https://mcp.example",
            "https://mcp.example/mcp/",
            "https://mcp.example/mcp/add",
        ),
        *("HTTPS://mcp.example/mcp", "https://mcp.example/mcp 7example", "x,7example", "[x,7example]", "[]", "", None),
        *([], ["x"], [7], {"7example": 1}, 7, True),
    ],
)
def test_a_token_for_another_audience_is_refused(aud: object) -> None:
    assert refused(aud=aud) == "token_audience"


def test_the_client_replaces_the_audience_only_if_there_is_none() -> None:
    assert refused(aud=..., client_id="7example") is None
    assert refused(aud=..., client_id="another") == "token_audience"
    assert refused(aud=..., client_id=...) == "token_audience"
    assert refused(aud="another", client_id="7example") == "token_audience"
    assert refused(aud="", client_id="7example") == "token_audience"


@pytest.mark.parametrize(
    "iss",
    ["https://id.example/", "http://id.example", "https://ID.example", "", ..., None, 7, ["https://id.example"]],
)
def test_a_token_of_another_issuer_is_refused(iss: object) -> None:
    assert refused(iss=iss) == "token_issuer"


@pytest.mark.parametrize("sub", ["", ..., None, 7, ["ann"]])
def test_a_token_without_a_subject_is_refused(sub: object) -> None:
    assert refused(sub=sub) == "token_without_subject"


@pytest.mark.parametrize("claim", [{"token_use": "id"}, {"typ": "ID"}, {"typ": "Refresh"}, {"typ": "Offline"}])
def test_a_token_that_is_not_for_access_is_refused(claim: dict[str, str]) -> None:
    assert refused(**claim) == "token_use"


@pytest.mark.parametrize("claim", [{"token_use": "access"}, {"typ": "Bearer"}, {"typ": "at+jwt"}, {}])
def test_a_token_for_access_may_say_so(claim: dict[str, str]) -> None:
    assert refused(**claim) is None


@pytest.mark.parametrize("exp", ["1785000001", "1.785000001e+09", 1785000001, 1785000000.5])
def test_a_token_is_valid_until_it_expires(exp: object) -> None:
    assert refused(exp=exp) is None


@pytest.mark.parametrize(
    "exp",
    [
        *("1785000000", "1784999999", "0", "-1", "nan", "", "never", "soon 2999", "Sat Jul 25 17:20:00 UTC 2026"),
        *(1785000000, None, ..., [], {}, True),
    ],
)
def test_a_token_that_has_expired_or_has_no_expiry_is_refused(exp: object) -> None:
    assert refused(exp=exp) == "token_expired"


def test_only_the_log_names_the_reason_of_a_refusal() -> None:
    with pytest.raises(Unauthorized) as caught:
        access_tokens.check_claims({**GOOD, "aud": "hunter2"}, {}, FOUND, NOW)
    error = caught.value
    assert (error.code, error.status, error.message) == (-32600, 401, "Invalid access token")
    assert error.data == {"reason": "invalid_token"}
    assert error.headers == {
        "www-authenticate": 'Bearer error="invalid_token", '
        'resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp"'
    }
    assert "hunter2" not in str(error)
