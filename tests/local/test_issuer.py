"""The local issuer gives tokens by the rules of OAuth 2.1, to clients of this machine only."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken

from mcp_functions.local.loopback import HttpRequest, HttpResponse
from tests.support.issuers import make_issuer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.local.issuer import Issuer

URL, RESOURCE, BACK = "http://127.0.0.1:9", "http://127.0.0.1:8/mcp", "http://127.0.0.1:7/back"
VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
FORM = "application/x-www-form-urlencoded"


class Clock:
    """Unix seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 1_785_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def issuer(clock: Clock) -> Issuer:
    return make_issuer(URL, RESOURCE, now=clock)


def ask(issuer: Issuer, method: str, target: str, body: bytes | None = None) -> HttpResponse:
    return issuer.answer(HttpRequest(method, target, (("content-type", FORM),), body))


def read(response: HttpResponse) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(response.body)
    return value


def register_client(issuer: Issuer, *redirect_uris: str) -> str:
    asked = {"redirect_uris": redirect_uris or [BACK], "client_name": "a client"}
    response = ask(issuer, "POST", "/register", json.dumps(asked).encode())
    assert response.status == 201
    return str(read(response)["client_id"])


def authorize(issuer: Issuer, client: str, **changed: str | None) -> HttpResponse:
    asked = {
        "response_type": "code",
        "client_id": client,
        "redirect_uri": BACK,
        "state": "s",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        **changed,
    }
    return ask(issuer, "GET", f"/authorize?{urlencode({k: v for k, v in asked.items() if v is not None})}")


def redirect_parameters(response: HttpResponse) -> dict[str, str]:
    assert response.status == 302
    query = urlsplit(dict(response.headers)["location"]).query
    return {name: values[0] for name, values in parse_qs(query).items()}


def token(issuer: Issuer, **asked: str) -> HttpResponse:
    return ask(issuer, "POST", "/token", urlencode(asked).encode())


def redeem(issuer: Issuer, client: str, code: str, /, **changed: str) -> HttpResponse:
    asked = {"grant_type": "authorization_code", "code": code, "client_id": client, "redirect_uri": BACK}
    return token(issuer, **{**asked, "code_verifier": VERIFIER, **changed})


def sign_in_and_get_tokens(issuer: Issuer, client: str, **asked: str) -> dict[str, Any]:
    return read(redeem(issuer, client, redirect_parameters(authorize(issuer, client, **asked))["code"]))


def claims(jwt: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(plain(jwt.split(".")[1]))
    return value


def plain(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def verify(jwt: str, jwks: Mapping[str, Any]) -> None:
    """Verify as RFC 7515 says, without the code under test."""
    signed, _, signature = jwt.rpartition(".")
    header = json.loads(plain(jwt.split(".", maxsplit=1)[0]))
    (key,) = [key for key in jwks["keys"] if key["kid"] == header["kid"]]
    modulus, exponent = (int.from_bytes(plain(key[name])) for name in ("n", "e"))
    public = rsa.RSAPublicNumbers(exponent, modulus).public_key()
    public.verify(plain(signature), signed.encode(), padding.PKCS1v15(), SHA256())


# --- its metadata -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"])
def test_the_official_client_reads_the_metadata(path: str, issuer: Issuer) -> None:
    metadata = OAuthMetadata.model_validate_json(ask(issuer, "GET", path).body)
    assert (str(metadata.issuer), str(metadata.token_endpoint)) == (URL, f"{URL}/token")
    assert metadata.code_challenge_methods_supported == ["S256"]
    assert metadata.authorization_response_iss_parameter_supported


def test_the_keys_of_the_issuer_verify_its_tokens_but_no_changed_ones(issuer: Issuer) -> None:
    jwks = read(ask(issuer, "GET", "/jwks"))
    assert jwks["keys"][0].keys() == {"kty", "use", "alg", "kid", "n", "e"}
    verify(issuer.token(), jwks)
    with pytest.raises(InvalidSignature):
        verify(issuer.token()[:-8] + "AAAAAAAA", jwks)


@pytest.mark.parametrize(("method", "path"), [("GET", "/"), ("POST", "/jwks"), ("GET", "/token"), ("PUT", "/register")])
def test_the_issuer_has_no_other_endpoints(method: str, path: str, issuer: Issuer) -> None:
    assert ask(issuer, method, path).status == 404


# --- the way to a token -------------------------------------------------------------------------------------------


def test_the_issuer_signs_in_every_user_without_a_page(issuer: Issuer, clock: Clock) -> None:
    client = register_client(issuer)
    back = redirect_parameters(
        authorize(issuer, client, scope="work:read work:write", resource=RESOURCE, login_hint="ann")
    )
    assert (back["state"], back["iss"], sorted(back)) == ("s", URL, ["code", "iss", "state"])
    got = OAuthToken.model_validate_json(redeem(issuer, client, back["code"], resource=RESOURCE).body)
    verify(got.access_token, issuer.jwks)
    said = claims(got.access_token)
    assert said.pop("jti")
    now = int(clock.now)
    assert said == {
        "iss": URL,
        "sub": "ann",
        "aud": RESOURCE,
        "client_id": client,
        "exp": now + 3600,
        "iat": now,
        "scope": "work:read work:write",
    }
    assert (got.expires_in, got.scope) == (3600, "work:read work:write")


def test_a_user_without_a_name_has_the_subject_local_user(issuer: Issuer) -> None:
    said = claims(sign_in_and_get_tokens(issuer, register_client(issuer))["access_token"])
    assert (said["sub"], said["aud"]) == ("local-user", RESOURCE)
    assert "scope" not in said


def test_the_official_client_reads_a_registration(issuer: Issuer) -> None:
    asked = {"redirect_uris": [BACK], "client_name": "a client", "token_endpoint_auth_method": "client_secret_basic"}
    response = ask(issuer, "POST", "/register", json.dumps(asked).encode())
    registration = OAuthClientInformationFull.model_validate_json(response.body)
    assert (registration.client_name, registration.token_endpoint_auth_method, registration.client_secret) == (
        "a client",
        "none",
        None,
    )


@pytest.mark.parametrize(
    "uri",
    [
        *("https://evil.example/back", "http://192.0.2.1/", "http://127.0.0.1.evil.example/", "http://evil@/", ""),
        *("http://127.0.0.1/#a", "javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "/back"),
    ],
)
def test_the_issuer_refuses_a_redirect_uri_of_another_machine(uri: str, issuer: Issuer) -> None:
    response = ask(issuer, "POST", "/register", json.dumps({"redirect_uris": [BACK, uri]}).encode())
    assert (response.status, read(response)["error"]) == (400, "invalid_redirect_uri")


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"redirect_uris": 7}', b'{"redirect_uris": [7]}', b"\xff"])
def test_a_malformed_registration_is_refused(body: bytes, issuer: Issuer) -> None:
    response = ask(issuer, "POST", "/register", body)
    assert (response.status, read(response)["error"].startswith("invalid_")) == (400, True)


@pytest.mark.parametrize("uri", ["http://127.0.0.1:4242/back", "http://127.0.0.1/back"])
def test_a_native_client_may_use_another_loopback_port(uri: str, issuer: Issuer) -> None:
    assert redirect_parameters(authorize(issuer, register_client(issuer), redirect_uri=uri))["code"]


def test_an_application_may_have_a_scheme_of_its_own(issuer: Issuer) -> None:
    uri = "cursor://auth/back?window=1"
    response = authorize(issuer, register_client(issuer, uri), redirect_uri=uri)
    assert dict(response.headers)["location"].startswith(f"{uri}&code=")


@pytest.mark.parametrize(
    "changed",
    [
        {"client_id": "nobody"},
        {"client_id": None},
        {"redirect_uri": None},
        {"redirect_uri": "http://127.0.0.1:7/other"},
        {"redirect_uri": "http://localhost:7/back"},
        {"redirect_uri": f"{BACK}?more"},
    ],
)
def test_an_unregistered_client_is_not_redirected(changed: dict[str, str | None], issuer: Issuer) -> None:
    response = authorize(issuer, register_client(issuer), **changed)
    assert (response.status, read(response)["error"]) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
    ],
)
def test_unsupported_requests_are_reported_to_the_client(
    changed: dict[str, str | None], error: str, issuer: Issuer
) -> None:
    back = redirect_parameters(authorize(issuer, register_client(issuer), **changed))
    assert (back["error"], back["state"], back["iss"]) == (error, "s", URL)


# --- codes and refresh tokens -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changed",
    [
        {"code": "another"},
        {"client_id": "another"},
        {"redirect_uri": "http://127.0.0.1:7/other"},
        {"code_verifier": "w" * 43},
        {"code_verifier": ""},
    ],
)
def test_a_code_is_valid_only_for_its_client_with_the_verifier(changed: dict[str, str], issuer: Issuer) -> None:
    client = register_client(issuer)
    code = redirect_parameters(authorize(issuer, client))["code"]
    response = redeem(issuer, client, code, **changed)
    assert (response.status, read(response)["error"]) == (400, "invalid_grant")


def test_a_code_is_valid_once_and_for_a_minute(issuer: Issuer, clock: Clock) -> None:
    client = register_client(issuer)
    first, late = (redirect_parameters(authorize(issuer, client))["code"] for _ in range(2))
    assert redeem(issuer, client, first).status == 200
    assert redeem(issuer, client, first).status == 400
    clock.now += 61
    assert redeem(issuer, client, late).status == 400


def test_a_token_request_cannot_change_the_resource_of_its_authorization(issuer: Issuer) -> None:
    client = register_client(issuer)
    code = redirect_parameters(authorize(issuer, client, resource="https://other.example/mcp"))["code"]
    assert read(redeem(issuer, client, code, resource=RESOURCE))["error"] == "invalid_target"
    said = sign_in_and_get_tokens(issuer, client, resource="https://other.example/mcp")
    assert claims(said["access_token"])["aud"] == "https://other.example/mcp"


def test_a_refresh_token_is_valid_once_and_returns_the_next(issuer: Issuer, clock: Clock) -> None:
    client = register_client(issuer)
    first = sign_in_and_get_tokens(issuer, client, scope="a b", login_hint="ann")
    asked = {"grant_type": "refresh_token", "client_id": client}
    clock.now += 4000
    second = read(token(issuer, **asked, refresh_token=first["refresh_token"]))
    assert second["access_token"] != first["access_token"]
    kept = ("iss", "sub", "aud", "client_id", "scope")
    old, new = claims(first["access_token"]), claims(second["access_token"])
    assert [old[name] for name in kept] == [new[name] for name in kept]
    assert new["exp"] == old["exp"] + 4000
    second_response = token(issuer, **asked, refresh_token=first["refresh_token"])
    assert (second_response.status, read(second_response)["error"]) == (400, "invalid_grant")
    assert token(issuer, **asked, refresh_token=second["refresh_token"]).status == 200


@pytest.mark.parametrize(("scope", "status"), [("a", 200), ("b a", 200), ("", 200), ("a c", 400)])
def test_a_refreshed_token_may_have_fewer_scopes_and_no_more(scope: str, status: int, issuer: Issuer) -> None:
    client = register_client(issuer)
    refresh = sign_in_and_get_tokens(issuer, client, scope="a b")["refresh_token"]
    response = token(issuer, grant_type="refresh_token", client_id=client, refresh_token=refresh, scope=scope)
    assert response.status == status


def test_a_refresh_token_of_another_client_is_refused(issuer: Issuer) -> None:
    refresh = sign_in_and_get_tokens(issuer, register_client(issuer))["refresh_token"]
    response = token(issuer, grant_type="refresh_token", client_id=register_client(issuer), refresh_token=refresh)
    assert read(response)["error"] == "invalid_grant"


@pytest.mark.parametrize("form", ["", "grant_type=password", "grant_type=a&grant_type=b", "%ff", "a", "grant_type"])
def test_a_malformed_token_request_is_refused(form: str, issuer: Issuer) -> None:
    response = ask(issuer, "POST", "/token", form.encode())
    assert response.status == 400
    assert read(response)["error"] in {"invalid_request", "unsupported_grant_type"}


def test_no_response_with_a_secret_may_be_stored(issuer: Issuer) -> None:
    client = register_client(issuer)
    authorized = authorize(issuer, client)
    responses = [
        authorized,
        redeem(issuer, client, redirect_parameters(authorized)["code"]),
        redeem(issuer, client, "no"),
    ]
    assert [dict(response.headers)["cache-control"] for response in responses] == ["no-store"] * 3


def test_repeated_registrations_do_not_fill_the_memory(issuer: Issuer) -> None:
    first = register_client(issuer)
    for _ in range(1000):
        register_client(issuer)
    assert authorize(issuer, first).status == 400


# --- an OpenID Connect provider ------------------------------------------------------------------------------------


def test_the_issuer_can_ask_for_the_name_of_the_user(clock: Clock) -> None:
    issuer = make_issuer(URL, RESOURCE, now=clock, redirect_uris={"desk": (BACK,)}, asks_for_user=True)
    page = authorize(issuer, "desk", state='"><script>')
    assert page.status == 200
    assert b"login_hint" in page.body
    assert b"<script" not in page.body
    assert authorize(issuer, "desk", login_hint="ann").status == 302


@pytest.mark.parametrize("way", ["none", "basic", "post"])
def test_a_sign_in_with_openid_gives_an_id_token_with_or_without_a_secret(way: str, issuer: Issuer) -> None:
    client = register_client(issuer)
    code = redirect_parameters(authorize(issuer, client, scope="openid", nonce="n"))["code"]
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": BACK, "code_verifier": VERIFIER}
    headers: tuple[tuple[str, str], ...] = ()
    if way == "basic":
        headers = (("authorization", f"Basic {base64.b64encode(f'{client}:any'.encode()).decode()}"),)
    else:
        form |= {"client_id": client, "client_secret": "any"} if way == "post" else {"client_id": client}
    response = issuer.answer(HttpRequest("POST", "/token", headers, urlencode(form).encode()))
    id_token = claims(read(response)["id_token"])
    assert (id_token["aud"], id_token["nonce"]) == (client, "n")
