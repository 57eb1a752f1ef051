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
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from mcp_functions.oauth import json_web_tokens
from mcp_functions.oauth.client_metadata import SECRET_METHODS, AuthMethod
from mcp_functions.oauth.clients import hash_secret
from mcp_functions.oauth.errors import ErrorCode, OAuthError
from mcp_functions.oauth.json_web_tokens import BadToken
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.oauth.client_metadata import Client
    from mcp_functions.oauth.request import OAuthRequest
    from mcp_functions.oauth.services import Services

ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"  # RFC 7523, section 2.2
MAX_ASSERTION_SECONDS = 600  # from now until an assertion expires: a thief may present it for so long
SKEW_SECONDS = 60  # the clock of a client may differ by this


class Credentials(NamedTuple):
    """The credentials of a request, not checked yet."""

    method: AuthMethod
    client_id: str
    secret: str = ""  # the client's secret; "" if the method needs none


def authenticate(request: OAuthRequest, endpoint: str, services: Services) -> Client:
    """Return the client that sent a request to an endpoint, "/token" or "/revoke".

    Raises:
        OAuthError: the client does not prove its identity.
        McpError: KMS does not answer, or the caller's budget is empty.
    """
    credentials = _credentials(request)
    client = services.clients.find(credentials.client_id, request.caller_id)
    # Otherwise a thief of the id could choose "none" for a client that registered a key or a secret.
    if credentials.method != client.method:
        raise OAuthError(ErrorCode.INVALID_CLIENT, "the client authenticates by another method than it registered")
    if client.method in SECRET_METHODS:
        digest = hash_secret(credentials.secret)
        if not hmac.compare_digest(digest, client.secret_digest):
            raise OAuthError(ErrorCode.INVALID_CLIENT, "the client's secret is wrong")
    if client.method == AuthMethod.PRIVATE_KEY:
        claims = _verify_assertion(request, client, services)
        _check_assertion(claims, client.id, {services.settings.url, f"{services.settings.url}{endpoint}"})
        _check_expiry(claims.get("exp"), services.now())
    return client


def _credentials(request: OAuthRequest) -> Credentials:
    """Read the credentials of a request."""
    form = request.parameters
    header = request.http.headers.get("authorization", "")
    given = [bool(header), "client_secret" in form, "client_assertion" in form]
    if given.count(True) > 1:  # "The client MUST NOT use more than one authentication method in each request."
        raise OAuthError(ErrorCode.INVALID_REQUEST, "the request has more than one way of client authentication")
    if header:
        client_id, secret = _read_basic(header)
        if form.get("client_id", client_id) != client_id:
            raise OAuthError(ErrorCode.INVALID_REQUEST, "the request names two clients")
        return Credentials(AuthMethod.BASIC, client_id, secret)
    if "client_assertion" in form:
        if form.get("client_assertion_type") != ASSERTION:
            raise OAuthError(ErrorCode.INVALID_CLIENT, "client_assertion_type is not that of a JWT")
        return Credentials(AuthMethod.PRIVATE_KEY, form.get("client_id") or _subject(form))
    if "client_secret" in form:
        return Credentials(AuthMethod.POST, form.get("client_id", ""), form["client_secret"])
    return Credentials(AuthMethod.NONE, form.get("client_id", ""))


def _read_basic(header: str) -> tuple[str, str]:
    """Return the client id and the secret of an Authorization header."""
    malformed = OAuthError(ErrorCode.INVALID_CLIENT, "the Authorization header is not Basic authentication")
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        raise malformed
    try:
        credentials = base64.b64decode(encoded, validate=True).decode()
    except ValueError:  # not base64, or not UTF-8
        raise malformed from None
    client_id, colon, secret = credentials.partition(":")
    if not colon:
        raise malformed
    return unquote_plus(client_id), unquote_plus(secret)


def _subject(form: Mapping[str, str]) -> str:
    """Return the client id that an assertion names. Its signature is checked when the client's keys are known."""
    try:
        claims = json_web_tokens.unverified_claims(form["client_assertion"])
    except BadToken:
        raise OAuthError(ErrorCode.INVALID_CLIENT, "the client assertion is malformed") from None
    return str(claims.get("sub", ""))


def _verify_assertion(request: OAuthRequest, client: Client, services: Services) -> dict[str, Any]:
    """Return the claims of a JWT with which a client proves that it has a private key."""
    key_set = services.clients.keys(client, request.caller_id)
    try:
        return json_web_tokens.verify(request.parameters["client_assertion"], key_set)
    except BadToken:
        description = "the client assertion is not signed by a key of the client"
        raise OAuthError(ErrorCode.INVALID_CLIENT, description) from None


def _check_assertion(claims: Mapping[str, Any], client_id: str, audiences: set[str]) -> None:
    """Check that an assertion is about its client, and for this server (RFC 7523, section 3)."""
    if claims.get("iss") != client_id or claims.get("sub") != client_id:
        raise OAuthError(ErrorCode.INVALID_CLIENT, "the client assertion is about another client")
    audience = claims.get("aud")
    named = audience if isinstance(audience, list) else [audience]
    if not any(isinstance(name, str) and name in audiences for name in named):
        raise OAuthError(ErrorCode.INVALID_CLIENT, "the client assertion is for another server")


def _check_expiry(expires: object, now: float) -> None:
    """Check `exp` of an assertion, in unix seconds."""
    if not isinstance(expires, int):
        raise OAuthError(ErrorCode.INVALID_CLIENT, "the client assertion has no expiry")
    if expires <= now - SKEW_SECONDS:
        raise OAuthError(ErrorCode.INVALID_CLIENT, "the client assertion has expired")
    if expires > now + MAX_ASSERTION_SECONDS + SKEW_SECONDS:
        raise OAuthError(ErrorCode.INVALID_CLIENT, "the client assertion is valid for too long")
