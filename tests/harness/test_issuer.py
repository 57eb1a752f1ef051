"""The local issuer gives tokens by the rules of OAuth 2.1, to clients of this machine only.

A test talks to the issuer as a `Client`, which has registered. Its methods send valid requests: a keyword replaces a
parameter, and None removes one.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt
import pytest
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken

from mcp_functions_harness.loopback import HttpRequest, HttpResponse
from tests.support.issuers import make_issuer

if TYPE_CHECKING:
    from mcp_functions_harness.issuer import Issuer

URL = "http://127.0.0.1:9"
RESOURCE = "http://127.0.0.1:8/mcp"
OTHER_RESOURCE = "https://other.example/mcp"
REDIRECT = "http://127.0.0.1:7/back"
VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()


class Clock:
    """Unix seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 1_785_000_000.0

    def __call__(self) -> float:
        return self.now


def send(issuer: Issuer, method: str, target: str, body: bytes | None = None, **headers: str) -> HttpResponse:
    return issuer.answer(HttpRequest(method, target, tuple(headers.items()), body))


def read(response: HttpResponse) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(response.body)
    return content


def read_error(response: HttpResponse) -> str:
    assert response.status == 400
    return str(read(response)["error"])


def register(issuer: Issuer, **metadata: object) -> HttpResponse:
    metadata = {"redirect_uris": [REDIRECT], "client_name": "a client", **metadata}
    return send(issuer, "POST", "/register", json.dumps(metadata).encode())


@dataclass
class Client:
    """An MCP client that has registered at the issuer."""

    issuer: Issuer
    id: str

    def authorize(self, **changed: str | None) -> HttpResponse:
        parameters = {
            "response_type": "code",
            "client_id": self.id,
            "redirect_uri": REDIRECT,
            "state": "s",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            **changed,
        }
        sent = {name: text for name, text in parameters.items() if text is not None}
        return send(self.issuer, "GET", f"/authorize?{urlencode(sent)}")

    def redirected_with(self, **changed: str | None) -> dict[str, str]:
        """Authorize, and return the parameters of the redirect to the client."""
        response = self.authorize(**changed)
        assert response.status == 302
        return dict(parse_qsl(urlsplit(dict(response.headers)["location"]).query))

    def redeem(self, code: str, **changed: str) -> HttpResponse:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": self.id,
            "redirect_uri": REDIRECT,
            "code_verifier": VERIFIER,
            **changed,
        }
        return send(self.issuer, "POST", "/token", urlencode(form).encode())

    def sign_in(self, **changed: str) -> dict[str, Any]:
        """Authorize and redeem the code; return the response with the tokens."""
        return read(self.redeem(self.redirected_with(**changed)["code"]))

    def refresh(self, token: str, **changed: str) -> HttpResponse:
        form = {"grant_type": "refresh_token", "client_id": self.id, "refresh_token": token, **changed}
        return send(self.issuer, "POST", "/token", urlencode(form).encode())


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def issuer(clock: Clock) -> Issuer:
    return make_issuer(URL, RESOURCE, now=clock)


def new_client(issuer: Issuer, **metadata: object) -> Client:
    response = register(issuer, **metadata)
    assert response.status == 201
    return Client(issuer, read(response)["client_id"])


@pytest.fixture
def client(issuer: Issuer) -> Client:
    return new_client(issuer)


def verified_claims(token: str, issuer: Issuer, audience: str = RESOURCE) -> dict[str, Any]:
    """Verify a token with another library than that of the package, and return its claims."""
    (key,) = jwt.PyJWKSet.from_dict(issuer.jwks).keys
    assert jwt.get_unverified_header(token)["kid"] == key.key_id
    # The clock of the issuer is not that of this machine.
    options: Any = {"verify_exp": False, "verify_iat": False}
    claims: dict[str, Any] = jwt.decode(token, key, algorithms=["RS256"], audience=audience, options=options)
    return claims


# --- its documents


@pytest.mark.parametrize("path", ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"])
def test_the_official_client_reads_the_metadata(path: str, issuer: Issuer) -> None:
    metadata = OAuthMetadata.model_validate_json(send(issuer, "GET", path).body)
    assert (str(metadata.issuer), str(metadata.token_endpoint)) == (URL, f"{URL}/token")
    assert metadata.code_challenge_methods_supported == ["S256"]
    assert metadata.authorization_response_iss_parameter_supported


def test_the_keys_of_the_issuer_verify_its_tokens_but_no_changed_ones(issuer: Issuer) -> None:
    published = read(send(issuer, "GET", "/jwks"))
    assert published == issuer.jwks
    assert published["keys"][0].keys() == {"kty", "use", "alg", "kid", "n", "e"}
    assert verified_claims(issuer.token(), issuer)
    with pytest.raises(jwt.InvalidSignatureError):
        verified_claims(issuer.token()[:-8] + "AAAAAAAA", issuer)


@pytest.mark.parametrize(("method", "path"), [("GET", "/"), ("POST", "/jwks"), ("GET", "/token"), ("PUT", "/register")])
def test_the_issuer_has_no_other_endpoints(method: str, path: str, issuer: Issuer) -> None:
    assert send(issuer, method, path).status == 404


# --- a registration


def test_the_official_client_reads_a_registration(issuer: Issuer) -> None:
    response = register(issuer, token_endpoint_auth_method="client_secret_basic")  # noqa: S106 - a name
    registered = OAuthClientInformationFull.model_validate_json(response.body)
    assert (registered.client_name, registered.token_endpoint_auth_method) == ("a client", "none")
    assert registered.client_secret is None


@pytest.mark.parametrize(
    "uri",
    [
        "https://evil.example/back",
        "http://192.0.2.1/",
        "http://127.0.0.1.evil.example/",
        "http://evil@/",
        "",
        "http://127.0.0.1/#a",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "/back",
    ],
)
def test_the_issuer_refuses_a_redirect_uri_of_another_machine(uri: str, issuer: Issuer) -> None:
    assert read_error(register(issuer, redirect_uris=[REDIRECT, uri])) == "invalid_redirect_uri"


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"redirect_uris": 7}', b'{"redirect_uris": [7]}', b"\xff"])
def test_a_malformed_registration_is_refused(body: bytes, issuer: Issuer) -> None:
    assert read_error(send(issuer, "POST", "/register", body)).startswith("invalid_")


def test_repeated_registrations_do_not_fill_the_memory(client: Client, issuer: Issuer) -> None:
    for _ in range(1000):
        register(issuer)
    assert client.authorize().status == 400


# --- a code


def test_the_issuer_signs_in_every_user_without_a_page(client: Client, issuer: Issuer, clock: Clock) -> None:
    redirected = client.redirected_with(scope="work:read work:write", resource=RESOURCE, login_hint="ann")
    assert (redirected["state"], redirected["iss"]) == ("s", URL)
    assert redirected.keys() == {"code", "iss", "state"}
    tokens = OAuthToken.model_validate_json(client.redeem(redirected["code"], resource=RESOURCE).body)
    assert (tokens.expires_in, tokens.scope) == (3600, "work:read work:write")
    claims = verified_claims(tokens.access_token, issuer)
    assert claims.pop("jti")
    assert claims == {
        "iss": URL,
        "sub": "ann",
        "aud": RESOURCE,
        "client_id": client.id,
        "exp": clock.now + 3600,
        "iat": clock.now,
        "scope": "work:read work:write",
    }


def test_a_user_without_a_name_has_the_subject_local_user(client: Client, issuer: Issuer) -> None:
    claims = verified_claims(client.sign_in()["access_token"], issuer)
    assert claims["sub"] == "local-user"
    assert "scope" not in claims


def test_the_issuer_can_ask_for_the_name_of_the_user(clock: Clock) -> None:
    known = {"desk": (REDIRECT,)}
    desk = Client(make_issuer(URL, RESOURCE, now=clock, redirect_uris=known, asks_for_user=True), "desk")
    page = desk.authorize(state='"><script>')
    assert page.status == 200
    assert b"login_hint" in page.body
    assert b"<script" not in page.body
    assert desk.redirected_with(login_hint="ann")["code"]


@pytest.mark.parametrize("uri", ["http://127.0.0.1:4242/back", "http://127.0.0.1/back"])
def test_a_native_client_may_use_another_loopback_port(uri: str, client: Client) -> None:
    assert client.redirected_with(redirect_uri=uri)["code"]


def test_an_application_may_have_a_scheme_of_its_own(issuer: Issuer) -> None:
    uri = "cursor://auth/back?window=1"
    response = new_client(issuer, redirect_uris=[uri]).authorize(redirect_uri=uri)
    assert dict(response.headers)["location"].startswith(f"{uri}&code=")


@pytest.mark.parametrize(
    "changed",
    [
        {"client_id": "nobody"},
        {"client_id": None},
        {"redirect_uri": None},
        {"redirect_uri": "http://127.0.0.1:7/other"},
        {"redirect_uri": "http://localhost:7/back"},
        {"redirect_uri": f"{REDIRECT}?more"},
    ],
)
def test_an_unregistered_client_is_not_redirected(changed: dict[str, str | None], client: Client) -> None:
    assert read_error(client.authorize(**changed)) == "invalid_request"


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
    changed: dict[str, str | None], error: str, client: Client
) -> None:
    redirected = client.redirected_with(**changed)
    assert (redirected["error"], redirected["state"], redirected["iss"]) == (error, "s", URL)


# --- tokens


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
def test_a_code_is_valid_only_for_its_client_with_the_verifier(changed: dict[str, str], client: Client) -> None:
    form = {"code": client.redirected_with()["code"], **changed}
    assert read_error(client.redeem(**form)) == "invalid_grant"


def test_a_code_is_valid_once_and_for_a_minute(client: Client, clock: Clock) -> None:
    first = client.redirected_with()["code"]
    late = client.redirected_with()["code"]
    assert client.redeem(first).status == 200
    assert client.redeem(first).status == 400
    clock.now += 61
    assert client.redeem(late).status == 400


def test_a_token_request_cannot_change_the_resource_of_its_authorization(client: Client, issuer: Issuer) -> None:
    code = client.redirected_with(resource=OTHER_RESOURCE)["code"]
    assert read_error(client.redeem(code, resource=RESOURCE)) == "invalid_target"
    tokens = client.sign_in(resource=OTHER_RESOURCE)
    assert verified_claims(tokens["access_token"], issuer, audience=OTHER_RESOURCE)


def test_a_refresh_token_is_valid_once_and_returns_the_next(client: Client, issuer: Issuer, clock: Clock) -> None:
    first = client.sign_in(scope="a b", login_hint="ann")
    clock.now += 4000
    second = read(client.refresh(first["refresh_token"]))
    old_claims = verified_claims(first["access_token"], issuer)
    new_claims = verified_claims(second["access_token"], issuer)
    assert new_claims["jti"] != old_claims["jti"]
    later = {"jti": new_claims["jti"], "iat": old_claims["iat"] + 4000, "exp": old_claims["exp"] + 4000}
    assert new_claims == old_claims | later
    assert read_error(client.refresh(first["refresh_token"])) == "invalid_grant"
    assert client.refresh(second["refresh_token"]).status == 200


@pytest.mark.parametrize(("scope", "status"), [("a", 200), ("b a", 200), ("", 200), ("a c", 400)])
def test_a_refreshed_token_may_have_fewer_scopes_and_no_more(scope: str, status: int, client: Client) -> None:
    token = client.sign_in(scope="a b")["refresh_token"]
    assert client.refresh(token, scope=scope).status == status


def test_a_refresh_token_of_another_client_is_refused(client: Client, issuer: Issuer) -> None:
    token = client.sign_in()["refresh_token"]
    assert read_error(new_client(issuer).refresh(token)) == "invalid_grant"


@pytest.mark.parametrize("form", ["", "grant_type=password", "grant_type=a&grant_type=b", "%ff", "a", "grant_type"])
def test_a_malformed_token_request_is_refused(form: str, issuer: Issuer) -> None:
    error = read_error(send(issuer, "POST", "/token", form.encode()))
    assert error in {"invalid_request", "unsupported_grant_type"}


def test_a_sign_in_with_openid_gives_an_id_token(client: Client, issuer: Issuer) -> None:
    tokens = client.sign_in(scope="openid", nonce="n")
    assert verified_claims(tokens["id_token"], issuer, audience=client.id)["nonce"] == "n"


def test_the_id_of_a_client_may_stand_in_the_header_authorization(client: Client, issuer: Issuer) -> None:
    code = client.redirected_with()["code"]
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": REDIRECT, "code_verifier": VERIFIER}
    header = f"Basic {base64.b64encode(f'{client.id}:any secret'.encode()).decode()}"
    assert send(issuer, "POST", "/token", urlencode(form).encode(), authorization=header).status == 200


def test_no_response_with_a_secret_may_be_stored(client: Client) -> None:
    code = client.redirected_with()["code"]
    for response in (client.authorize(), client.redeem(code), client.redeem("no")):
        assert dict(response.headers)["cache-control"] == "no-store"
