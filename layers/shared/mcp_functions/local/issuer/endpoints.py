"""The authorization server's endpoints, and those of an OpenID Connect provider.

    GET  METADATA_PATHS    documents that say where the endpoints are
    GET  /jwks             the public keys
    POST /register         a client gets an id (RFC 7591)
    GET  /authorize        the user's browser gets a code for the client
    POST /token            the client gets tokens for a code, or for a refresh token
    POST /revoke           a refresh token ends (RFC 7009)

Every user is signed in at once, as `login_hint` or as `local-user`; or a page asks for the name.
"""

from __future__ import annotations

import base64
import json
import secrets
import time
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from mcp_functions.local.issuer.grants import Grant, Grants
from mcp_functions.local.issuer.jwts import Signer
from mcp_functions.local.loopback import HttpResponse, json_response
from mcp_functions.oauth import client_metadata, errors, redirects, registration
from mcp_functions.oauth.errors import OAuthError
from mcp_functions.oauth.request import read_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.local.loopback import HttpRequest

USER = "local-user"
TOKEN_SECONDS = 3600  # how long an access token is valid
NOT_STORED = ("cache-control", "no-store")  # the header of every answer that may hold a secret
NOT_FOUND = json_response(404, {"message": "Not Found"})
METADATA_PATHS = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")


@dataclass(frozen=True)
class Behaviour:
    """How a provider differs from the usual one, which these defaults describe."""

    # by client id: the redirect URIs of the clients that the provider knows without a registration
    redirect_uris: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)  # by client id: the secret of each client that has one
    rotates_refresh_tokens: bool = True  # whether a refresh token is valid only once
    asks_for_user: bool = False  # whether a page asks who signs in
    claims: Mapping[str, object] = field(default_factory=dict)  # more claims of access tokens; None removes one


class Issuer:
    """Signs people in for the clients of one resource."""

    def __init__(
        self, url: str, resource: str, *, now: Callable[[], float] = time.time, behaviour: Behaviour = Behaviour()
    ) -> None:
        """Begin without clients and tokens, with a new signing key.

        Args:
            url: this server's URL, without a path; also the `iss` of its tokens.
            resource: URL of the MCP endpoint, the default audience of tokens.
            now: the clock, unix seconds.
            behaviour: how this server differs from the usual provider.
        """
        self.url = url
        self._resource = resource
        self._now = now
        self._behaviour = behaviour
        self._signer = Signer()
        self._grants = Grants(behaviour.redirect_uris, rotates_refresh_tokens=behaviour.rotates_refresh_tokens)

    @property
    def jwks(self) -> dict[str, Any]:
        """The public keys of its tokens."""
        return self._signer.jwks

    def token(self, *, subject: str = USER, scope: str = "", **changed: object) -> str:
        """Make an access token; with `changed` also one that the server does not issue, e.g. an expired one.

        Args:
            subject: the user.
            scope: the scopes that it grants, separated by spaces.
            changed: other claims by name; None removes a claim.
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
        path, _, query = request.target.partition("?")
        try:
            if request.method == "GET":
                return self._get(path, query)
            if request.method == "POST":
                return self._post(request, path)
        except OAuthError as error:
            return json_response(400, {"error": error.code, "error_description": error.description}, NOT_STORED)
        return NOT_FOUND

    def _get(self, path: str, query: str) -> HttpResponse:
        if path in METADATA_PATHS:
            return json_response(200, self._metadata())
        if path == "/jwks":
            return json_response(200, self.jwks)
        if path == "/authorize":
            return self._authorize(read_parameters(query))
        return NOT_FOUND

    def _post(self, request: HttpRequest, path: str) -> HttpResponse:
        handlers: dict[str, Callable[[Any], HttpResponse]] = {
            "/token": self._token,
            "/revoke": self._revoke,
            "/register": self._register,
        }
        if path not in handlers:
            return NOT_FOUND
        try:
            body = json.loads(request.body or b"") if path == "/register" else self._authenticated_form(request)
        except (ValueError, RecursionError):
            raise OAuthError(errors.INVALID_REQUEST, "the body cannot be read") from None
        return handlers[path](body)

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

    def _register(self, body: object) -> HttpResponse:
        metadata = client_metadata.read(body)
        client = metadata._replace(id=self._grants.register(metadata.redirect_uris), method=client_metadata.NONE)
        return json_response(201, registration.describe(client, "", int(self._now())), NOT_STORED)

    def _authorize(self, parameters: Mapping[str, str]) -> HttpResponse:
        client = parameters.get("client_id", "")
        redirect_uri = parameters.get("redirect_uri", "")
        if not self._grants.knows(client, redirect_uri):  # an error must not be sent to an unknown URI
            raise OAuthError(errors.INVALID_REQUEST, "client_id and redirect_uri are not those of a registered client")
        if self._behaviour.asks_for_user and "login_hint" not in parameters:
            return _login_page(parameters)
        try:
            answer = {"code": self._code(parameters)}
        except OAuthError as error:
            answer = {"error": error.code, "error_description": error.description}
        answer["iss"] = self.url
        if "state" in parameters:
            answer["state"] = parameters["state"]
        return HttpResponse(302, (("location", redirects.with_answer(redirect_uri, answer)), NOT_STORED))

    def _code(self, parameters: Mapping[str, str]) -> str:
        if parameters.get("response_type") != "code":
            raise OAuthError(errors.UNSUPPORTED_RESPONSE_TYPE, "only response_type=code")
        is_sha256 = parameters.get("code_challenge_method") == "S256"
        grant = Grant(
            client=parameters["client_id"],
            subject=parameters.get("login_hint") or USER,
            scope=parameters.get("scope", ""),
            resource=parameters.get("resource") or self._resource,
            redirect_uri=parameters["redirect_uri"],
            challenge=parameters.get("code_challenge", "") if is_sha256 else "",
            nonce=parameters.get("nonce", ""),
        )
        return self._grants.code(grant, self._now())

    def _token(self, parameters: Mapping[str, str]) -> HttpResponse:
        client = parameters.get("client_id", "")
        match parameters.get("grant_type"):
            case "authorization_code":
                grant = self._grants.redeem(
                    parameters.get("code", ""),
                    client=client,
                    redirect_uri=parameters.get("redirect_uri", ""),
                    verifier=parameters.get("code_verifier", ""),
                    now=self._now(),
                )
            case "refresh_token":
                refresh_token = parameters.get("refresh_token", "")
                grant = self._grants.refresh(refresh_token, client=client, scope=parameters.get("scope"))
            case _:
                raise OAuthError(errors.UNSUPPORTED_GRANT_TYPE, "only authorization_code and refresh_token")
        if parameters.get("resource", grant.resource) != grant.resource:
            raise OAuthError(errors.INVALID_TARGET, "the code was for another resource")
        return json_response(200, self._token_response(grant), NOT_STORED)

    def _revoke(self, parameters: Mapping[str, str]) -> HttpResponse:
        self._grants.revoke(parameters.get("token", ""))
        return json_response(200, {}, NOT_STORED)

    def _authenticated_form(self, request: HttpRequest) -> dict[str, str]:
        """Check the client's secret, if it must have one; return the form with the client's id and secret.

        Raises:
            OAuthError: the secret is wrong.
            ValueError: the body or the header cannot be read.
        """
        form = read_parameters((request.body or b"").decode())
        scheme, _, encoded = request.header("authorization").partition(" ")
        if scheme.lower() == "basic":
            client, _, secret = base64.b64decode(encoded).decode().partition(":")
            form = {**form, "client_id": unquote_plus(client), "client_secret": unquote_plus(secret)}
        expected = self._behaviour.secrets.get(form.get("client_id", ""))
        if expected is not None and form.get("client_secret") != expected:
            raise OAuthError(errors.INVALID_CLIENT, "the client's secret is wrong")
        return form

    def _token_response(self, grant: Grant) -> dict[str, Any]:
        claims = {"aud": grant.resource, "client_id": grant.client, **self._behaviour.claims}
        response = {
            "access_token": self.token(subject=grant.subject, scope=grant.scope, **claims),
            "token_type": "Bearer",
            "expires_in": TOKEN_SECONDS,
            "scope": grant.scope,
        }
        if "openid" in grant.scope.split():
            claims = {"aud": grant.client, "client_id": None, "nonce": grant.nonce}
            response["id_token"] = self.token(subject=grant.subject, scope="", **claims)
        return {**response, "refresh_token": self._grants.refresh_token(grant)}


def _login_page(parameters: Mapping[str, str]) -> HttpResponse:
    """Make the page that asks who signs in."""
    inputs = ""
    for name, value in parameters.items():
        inputs += f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'
    form = f'<form action="/authorize">{inputs}<input name="login_hint"><button>Sign in</button></form>'
    headers = (("content-type", "text/html; charset=utf-8"), NOT_STORED)
    return HttpResponse(200, headers, f"<!doctype html><title>Sign in</title>{form}".encode())
