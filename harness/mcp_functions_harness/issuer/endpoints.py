"""The endpoints of the local authorization server, which is an OpenID Connect provider too.

    GET  METADATA_PATHS    documents that say where the endpoints are
    GET  /jwks             the public keys
    POST /register         a client gets an id (RFC 7591)
    GET  /authorize        the user's browser gets a code for the client
    POST /token            the client gets tokens for a code, or for a refresh token
    POST /revoke           a refresh token ends (RFC 7009)

`/authorize` signs the user in as `login_hint`, or else as `local-user`, or asks for the name on a page.
"""

import base64
import json
import re
import secrets
import time
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from mcp_functions.oauth import client_metadata, redirects, registration
from mcp_functions.oauth.errors import OAuthError
from mcp_functions.oauth.request import read_parameters
from mcp_functions.oauth.sign_in import CHALLENGE
from mcp_functions_harness.issuer.grants import CODE_SECONDS, Grant, Grants
from mcp_functions_harness.issuer.jwts import Signer
from mcp_functions_harness.loopback import HttpRequest, HttpResponse, json_response

USER = "local-user"
TOKEN_SECONDS = 3600  # how long an access token is valid
NO_STORE = ("cache-control", "no-store")  # a header of every response that may hold a secret
METADATA_PATHS = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")


class Issuer:
    """An authorization server for the clients of one MCP endpoint."""

    def __init__(
        self,
        url: str,
        resource: str,
        *,
        now: Callable[[], float] = time.time,
        redirect_uris: Mapping[str, tuple[str, ...]] | None = None,
        asks_for_user: bool = False,
    ) -> None:
        """Start with a new signing key.

        Args:
            url: this server's URL, without a path; also the `iss` of its tokens.
            resource: the URL of the MCP endpoint, the default audience of tokens.
            now: the clock, in unix seconds.
            redirect_uris: the redirect URIs of clients that are known without a registration, by client id.
            asks_for_user: whether a page asks who signs in.
        """
        self.url = url
        self._resource = resource
        self._now = now
        self._asks_for_user = asks_for_user
        self._signer = Signer()
        self._grants = Grants(redirect_uris or {})

    @property
    def jwks(self) -> dict[str, Any]:
        """The public keys of its tokens."""
        return self._signer.jwks

    def token(self, *, subject: str = USER, scope: str = "", **changed: object) -> str:
        """Make an access token of a user for scopes, separated by spaces.

        Tests change its claims: `exp=0` makes an expired token, and None removes a claim.
        """
        now = int(self._now())
        claims: dict[str, Any] = {
            "iss": self.url,
            "sub": subject,
            "aud": self._resource,
            "client_id": "local-client",
            "exp": now + TOKEN_SECONDS,
            "iat": now,
            "jti": secrets.token_urlsafe(12),
            "scope": scope or None,
            **changed,
        }
        return self._signer.sign({name: value for name, value in claims.items() if value is not None})

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer one request."""
        path = request.target.partition("?")[0]
        documents = {"/jwks": self.jwks, **dict.fromkeys(METADATA_PATHS, self._metadata())}
        if request.method == "GET" and path in documents:
            return json_response(200, documents[path])
        endpoints = {
            "POST /register": self._register,
            "GET /authorize": self._authorize,
            "POST /token": self._issue_tokens,
            "POST /revoke": self._revoke,
        }
        endpoint = endpoints.get(f"{request.method} {path}")
        if endpoint is None:
            return json_response(404, {"message": "Not Found"})
        try:
            return endpoint(request)
        except OAuthError as error:
            return json_response(400, error.parameters(), NO_STORE)

    def _metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "revocation_endpoint": f"{self.url}/revoke",
            "jwks_uri": f"{self.url}/jwks",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "authorization_response_iss_parameter_supported": True,
        }

    def _register(self, request: HttpRequest) -> HttpResponse:
        try:
            metadata = client_metadata.read(json.loads(request.body or b""))
        except (ValueError, RecursionError):
            raise OAuthError(code="invalid_request", description="the body cannot be read") from None
        client_id = self._grants.register(metadata.redirect_uris)
        client = metadata._replace(id=client_id, method="none")
        return json_response(201, registration.describe(client, "", int(self._now())), NO_STORE)

    def _authorize(self, request: HttpRequest) -> HttpResponse:
        parameters = read_parameters(request.target.partition("?")[2])
        client = parameters.get("client_id", "")
        redirect_uri = parameters.get("redirect_uri", "")
        # The error is shown here, and not sent to an unknown URI.
        if not self._grants.knows(client, redirect_uri):
            raise OAuthError(
                code="invalid_request", description="client_id and redirect_uri are not those of a registered client"
            )
        if self._asks_for_user and "login_hint" not in parameters:
            return _login_page(parameters)
        try:
            answer = {"code": self._issue_code(parameters)}
        except OAuthError as error:
            answer = error.parameters()
        answer["iss"] = self.url
        if "state" in parameters:
            answer["state"] = parameters["state"]
        return HttpResponse(302, (("location", redirects.with_parameters(redirect_uri, answer)), NO_STORE))

    def _issue_code(self, parameters: Mapping[str, str]) -> str:
        if parameters.get("response_type") != "code":
            raise OAuthError(code="unsupported_response_type", description="only response_type=code")
        challenge = parameters.get("code_challenge", "")
        if parameters.get("code_challenge_method") != "S256" or not re.fullmatch(CHALLENGE, challenge):
            raise OAuthError(
                code="invalid_request", description="PKCE is needed: code_challenge and code_challenge_method=S256"
            )
        grant = Grant(
            client=parameters["client_id"],
            subject=parameters.get("login_hint") or USER,
            scope=parameters.get("scope", ""),
            resource=parameters.get("resource") or self._resource,
            redirect_uri=parameters["redirect_uri"],
            challenge=challenge,
            nonce=parameters.get("nonce", ""),
            code_expires=self._now() + CODE_SECONDS,
        )
        return self._grants.code(grant)

    def _issue_tokens(self, request: HttpRequest) -> HttpResponse:
        form = _read_form(request)
        match form.get("grant_type"):
            case "authorization_code":
                grant = self._grants.redeem(form, self._now())
            case "refresh_token":
                grant = self._grants.refresh(form)
            case _:
                raise OAuthError(code="unsupported_grant_type", description="only authorization_code and refresh_token")
        if form.get("resource", grant.resource) != grant.resource:
            raise OAuthError(code="invalid_target", description="the code was for another resource")
        tokens: dict[str, Any] = {
            "access_token": self.token(
                subject=grant.subject, scope=grant.scope, aud=grant.resource, client_id=grant.client
            ),
            "token_type": "Bearer",
            "expires_in": TOKEN_SECONDS,
            "scope": grant.scope,
            "refresh_token": self._grants.refresh_token(grant),
        }
        if "openid" in grant.scope.split():
            tokens["id_token"] = self.token(subject=grant.subject, aud=grant.client, client_id=None, nonce=grant.nonce)
        return json_response(200, tokens, NO_STORE)

    def _revoke(self, request: HttpRequest) -> HttpResponse:
        self._grants.revoke(_read_form(request).get("token", ""))
        return json_response(200, {}, NO_STORE)


def _read_form(request: HttpRequest) -> dict[str, str]:
    """Read the parameters in a body. A client's id may stand in the header Authorization; any secret is accepted."""
    scheme, _, encoded = request.header("authorization").partition(" ")
    try:
        form = read_parameters((request.body or b"").decode())
        if scheme.lower() == "basic":
            form["client_id"] = base64.b64decode(encoded).decode().partition(":")[0]
    except ValueError:
        raise OAuthError(code="invalid_request", description="the body cannot be read") from None
    return form


def _login_page(parameters: Mapping[str, str]) -> HttpResponse:
    inputs = ""
    for name, value in parameters.items():
        inputs += f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'
    form = f'<form action="/authorize">{inputs}<input name="login_hint"><button>Sign in</button></form>'
    headers = (("content-type", "text/html; charset=utf-8"), NO_STORE)
    return HttpResponse(200, headers, f"<!doctype html><title>Sign in</title>{form}".encode())
