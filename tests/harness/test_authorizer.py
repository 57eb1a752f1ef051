"""The local JWT authorizer accepts and refuses tokens as an HTTP API does, and gives claims to the function as text."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest

from mcp_functions_harness.api_gateway.authorizer import Denied, JwtAuthorizer
from mcp_functions_harness.issuer import Issuer
from mcp_functions_harness.loopback import HttpRequest, HttpResponse

NOW = 1_785_000_000.0
URL, RESOURCE = "http://127.0.0.1:9", "http://127.0.0.1:8/mcp"
ISSUER = Issuer(URL, RESOURCE, now=lambda: NOW)  # one key for all tests


def authorize(header: str | None) -> dict[str, Any]:
    authorizer = JwtAuthorizer(URL, [RESOURCE, "app"], lambda: ISSUER.jwks, now=lambda: NOW)
    sent = (("Authorization", header),) if header is not None else ()
    return dict(authorizer.authorize(HttpRequest("POST", "/mcp", sent, b"{}")))


def refusal_of(header: str | None) -> HttpResponse:
    with pytest.raises(Denied) as caught:
        authorize(header)
    return caught.value.response


def challenge(response: HttpResponse) -> str:
    assert dict(response.headers)["content-type"] == "application/json"
    return dict(response.headers)["www-authenticate"]


def bearer(**changed: Any) -> str:  # noqa: ANN401 - any claim
    return f"Bearer {ISSUER.token(**changed)}"


def test_claims_reach_the_function_as_text() -> None:
    odd = {"groups": ["a", "b"], "admin": True, "level": 1.5, "address": {"city": "Rome"}}
    told = authorize(bearer(subject="ann", scope="work:read", jti="1", **odd))
    assert told == {
        "jwt": {
            "claims": {
                "iss": URL,
                "sub": "ann",
                "aud": RESOURCE,
                "client_id": "local-client",
                "exp": "1785003600",
                "iat": "1785000000",
                "jti": "1",
                "scope": "work:read",
                "groups": "[a b]",
                "admin": "true",
                "level": "1.5",
                "address": '{"city": "Rome"}',
            },
            "scopes": None,
        }
    }


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "BEARER   ", ""])
def test_the_authorizer_accepts_a_token_with_or_without_its_scheme(scheme: str) -> None:
    assert authorize(scheme + ISSUER.token(subject="ann"))["jwt"]["claims"]["sub"] == "ann"


@pytest.mark.parametrize("header", [None, "", "  "])
def test_a_request_without_a_token_gets_a_challenge_without_an_error(header: str | None) -> None:
    response = refusal_of(header)
    assert (response.status, json.loads(response.body)) == (401, {"message": "Unauthorized"})
    assert challenge(response) == "Bearer"


@pytest.mark.parametrize(
    ("changed", "passes"),
    [
        ({"aud": "app"}, True),
        ({"aud": ["x", "app"]}, True),
        ({"aud": None, "client_id": "app"}, True),
        ({"aud": None}, False),
        ({"aud": "x", "client_id": "app"}, False),
        ({"aud": []}, False),
        ({"aud": 7}, False),
    ],
)
def test_the_client_counts_as_the_audience_of_a_token_without_one(changed: dict[str, Any], passes: bool) -> None:  # noqa: FBT001
    if passes:
        assert authorize(bearer(**changed))
        return
    expected = 'Bearer scope="" error="invalid_token" error_description="the token does not have a valid audience"'
    assert challenge(refusal_of(bearer(**changed))) == expected


@pytest.mark.parametrize(
    ("changed", "description"),
    [
        ({"exp": NOW}, "the token has expired"),
        ({"exp": "1785003600"}, "the token has expired"),
        ({"exp": True}, "the token has expired"),
        ({"nbf": NOW + 1}, "the token is not valid yet"),
        ({"iat": NOW + 1}, "the token is not valid yet"),
        ({"iss": URL + "/"}, "invalid issuer"),
        ({"iss": None}, "invalid issuer"),
    ],
)
def test_an_expired_token_and_a_token_of_another_issuer_are_refused(changed: dict[str, Any], description: str) -> None:
    response = refusal_of(bearer(**changed))
    assert response.status == 401
    assert challenge(response) == f'Bearer scope="" error="invalid_token" error_description="{description}"'


def token_part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def forge_token() -> dict[str, str]:
    good = ISSUER.token(subject="mallory")
    header, claims, signature = good.split(".")
    kid = json.loads(base64.urlsafe_b64decode(header + "=="))["kid"]
    modulus = base64.urlsafe_b64decode(ISSUER.jwks["keys"][0]["n"] + "==")
    hs256 = f"{token_part({'alg': 'HS256', 'kid': kid})}.{claims}"
    mac = base64.urlsafe_b64encode(hmac.digest(modulus, hs256.encode(), hashlib.sha256)).rstrip(b"=").decode()
    other = Issuer(URL, RESOURCE, now=lambda: NOW).token()
    return {
        "no signature": f"{header}.{claims}.",
        "algorithm none": f"{token_part({'alg': 'none', 'kid': kid})}.{claims}.",
        "signed with the public key": f"{hs256}.{mac}",
        "somebody else's key": other,
        "somebody else's key under our name": f"{header}.{'.'.join(other.split('.')[1:])}",
        "other claims": f"{header}.{token_part({'iss': URL, 'sub': 'root', 'aud': RESOURCE, 'exp': 4e9})}.{signature}",
        "no key id": f"{token_part({'alg': 'RS256'})}.{claims}.{signature}",
        "claims that are a list": f"{header}.{token_part([1])}.{signature}",
        "a header that is a list": f"{token_part([1])}.{claims}.{signature}",
        "two parts": f"{header}.{claims}",
        "four parts": f"{good}.{signature}",
        "no base64": "a.b.c!",
        "no JSON": "YQ.YQ.YQ",
        "a word": "letmein",
        "a password": "Basic YW5uOmh1bnRlcjI=",
    }


@pytest.mark.parametrize("name", forge_token())
def test_a_token_that_the_issuer_did_not_sign_is_refused(name: str) -> None:
    response = refusal_of(f"Bearer {forge_token()[name]}")
    assert (response.status, json.loads(response.body)) == (401, {"message": "Unauthorized"})
    assert challenge(response).startswith('Bearer scope="" error="invalid_token" error_description="')


@pytest.mark.parametrize(
    ("name", "description"),
    [
        ("a word", "the token is malformed"),
        ("claims that are a list", "the token is malformed"),
        ("algorithm none", "the algorithm of the token is not supported"),
        ("somebody else's key", "no key has signed the token"),
    ],
)
def test_the_challenge_says_why_a_token_was_not_verified(name: str, description: str) -> None:
    expected = f'Bearer scope="" error="invalid_token" error_description="{description}"'
    assert challenge(refusal_of(f"Bearer {forge_token()[name]}")) == expected
