"""How a client proves at the token endpoint who it is (RFC 6749, section 2.3).

A client registers one of these methods, and proves itself by no other:

    none                  its client id alone
    client_secret_basic   its id and its secret in the Authorization header
    client_secret_post    its id and its secret in the form
    private_key_jwt       an assertion: a JWT that it signed with its private key (RFC 7523)
"""

from __future__ import annotations

import base64
import hmac
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

from mcp_functions.oauth import json_web_tokens
from mcp_functions.oauth.client_metadata import SECRET_METHODS, digest_id
from mcp_functions.oauth.clients import hash_secret
from mcp_functions.oauth.errors import OAuthError
from mcp_functions.oauth.json_web_tokens import BadToken
from mcp_functions.oauth.sealed_values import REFRESH
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from mcp_functions.oauth.client_metadata import Client
    from mcp_functions.oauth.json_types import TokenClaims
    from mcp_functions.oauth.request import OAuthRequest
    from mcp_functions.oauth.services import Services

ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"  # RFC 7523, section 2.2
MAX_ASSERTION_SECONDS = 600  # until an assertion expires: a thief may present it for so long
SKEW_SECONDS = 60  # the clock of a client may differ by this


class Credentials(NamedTuple):
    """The credentials of a request, not checked yet."""

    method: str  # one of client_metadata.METHODS
    client_id: str
    proof: str = ""  # the client's secret or assertion; "" if the method needs none


def authenticate(request: OAuthRequest, endpoint: str, services: Services) -> Client:
    """Return the client that sent a request to an endpoint, "/token" or "/revoke"."""
    credentials = _read_credentials(request)
    client = services.clients.find(
        credentials.client_id, request.caller_id, lambda: _has_refresh_token(request, credentials.client_id, services)
    )
    # Otherwise a thief of the id could choose "none" for a client that registered a key or a secret.
    if credentials.method != client.method:
        raise OAuthError(
            code="invalid_client", description="the client authenticates by another method than it registered"
        )
    if client.method in SECRET_METHODS:
        digest = hash_secret(credentials.proof)
        if not hmac.compare_digest(digest, client.secret_digest):
            raise OAuthError(code="invalid_client", description="the client's secret is wrong")
    if client.method == "private_key_jwt":
        claims = _verify_assertion(credentials.proof, client, request, services)
        audiences = {services.settings.url, f"{services.settings.url}{endpoint}"}
        problem = _problem(claims, client.id, audiences, services.now())
        if problem:
            raise OAuthError(code="invalid_client", description=problem)
    return client


def _has_refresh_token(request: OAuthRequest, client_id: str, services: Services) -> bool:
    """Check whether a request brings a refresh token of a client, which was in use not long ago if it has one."""
    token = request.parameters.get("refresh_token") or request.parameters.get("token", "")
    bound_to = (digest_id(client_id), services.settings.resource)
    return services.values.open(REFRESH, token, request.caller_id, *bound_to) is not None


def _read_credentials(request: OAuthRequest) -> Credentials:
    form = request.parameters
    header = request.http.headers.get("authorization", "")
    given = [bool(header), "client_secret" in form, "client_assertion" in form]
    # "The client MUST NOT use more than one authentication method in each request."
    if given.count(True) > 1:
        raise OAuthError(
            code="invalid_request", description="the request has more than one way of client authentication"
        )
    if header:
        client_id, secret = _read_basic(header)
        if form.get("client_id", client_id) != client_id:
            raise OAuthError(code="invalid_request", description="the request names two clients")
        if not secret:  # some public clients send a header all the same
            return Credentials("none", client_id)
        return Credentials("client_secret_basic", client_id, secret)
    client_id = form.get("client_id", "")
    if "client_assertion" in form:
        if form.get("client_assertion_type") != ASSERTION:
            raise OAuthError(code="invalid_client", description="client_assertion_type is not that of a JWT")
        assertion = form["client_assertion"]
        return Credentials("private_key_jwt", client_id or _subject(assertion), assertion)
    if "client_secret" in form:
        return Credentials("client_secret_post", client_id, form["client_secret"])
    return Credentials("none", client_id)


def _read_basic(header: str) -> tuple[str, str]:
    """Return the client id and the secret of an Authorization header."""
    scheme, _, encoded = header.partition(" ")
    try:
        credentials = base64.b64decode(encoded, validate=True).decode()
    except ValueError:  # not base64, or not UTF-8
        credentials = ""
    client_id, colon, secret = credentials.partition(":")
    if scheme.lower() != "basic" or not colon:
        raise OAuthError(code="invalid_client", description="the Authorization header is not Basic authentication")
    return unquote_plus(client_id), unquote_plus(secret)


def _subject(assertion: str) -> str:
    """Return the client id that an assertion names. Its signature is checked when the client's keys are known."""
    try:
        claims = json_web_tokens.unverified_claims(assertion)
    except BadToken:
        raise OAuthError(code="invalid_client", description="the client assertion is malformed") from None
    return str(claims.get("sub", ""))


def _verify_assertion(assertion: str, client: Client, request: OAuthRequest, services: Services) -> TokenClaims:
    """Return the claims of the JWT with which a client proves that it has a private key."""
    try:
        return json_web_tokens.verify_with(partial(services.clients.keys, client, request.caller_id), assertion)
    except BadToken:
        raise OAuthError(
            code="invalid_client", description="the client assertion is not signed by a key of the client"
        ) from None


def _problem(claims: TokenClaims, client_id: str, audiences: set[str], now: float) -> str | None:
    """Return what is wrong with the claims of an assertion (RFC 7523, section 3); None if nothing is."""
    if claims.get("iss") != client_id or claims.get("sub") != client_id:
        return "the client assertion is about another client"
    if audiences.isdisjoint(json_web_tokens.audiences(claims)):
        return "the client assertion is for another server"
    expires = claims.get("exp")  # unix seconds
    if not isinstance(expires, int):
        return "the client assertion has no expiry"
    if expires <= now - SKEW_SECONDS:
        return "the client assertion has expired"
    is_too_long = expires > now + MAX_ASSERTION_SECONDS + SKEW_SECONDS
    return "the client assertion is valid for too long" if is_too_long else None
