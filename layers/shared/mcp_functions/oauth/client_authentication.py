"""How a client proves at the token endpoint who it is: by the one method that it registered (RFC 6749, section 2.3)."""

from __future__ import annotations

import base64
import hmac
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote_plus

from mcp_functions.oauth import errors, json_web_tokens
from mcp_functions.oauth.client_metadata import BASIC, NONE, POST, PRIVATE_KEY, SECRET_METHODS
from mcp_functions.oauth.clients import digest
from mcp_functions.oauth.errors import OAuthError
from mcp_functions.oauth.json_web_tokens import BadToken

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.oauth.client_metadata import Client
    from mcp_functions.oauth.clients import Clients
    from mcp_functions.oauth.visits import Visit

ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"  # RFC 7523, section 2.2
MAX_ASSERTION_SECONDS = 600  # the longest time until an assertion expires
SKEW_SECONDS = 60  # how far the client's clock may differ


class Credentials(NamedTuple):
    """The proof of a client in a request."""

    method: str  # one of `client_metadata.METHODS`
    client_id: str
    secret: str = ""  # "" for a method without a secret


def authenticate(visit: Visit, clients: Clients, audiences: set[str], now: float) -> Client:
    """Return the client that sent a request to the token or the revocation endpoint.

    Args:
        visit: the request.
        clients: the registry that finds the client.
        audiences: the accepted audiences of assertions: the front's issuer and the endpoint.
        now: the current time in unix seconds.

    Raises:
        OAuthError: the client does not prove its identity.
        McpError: KMS does not answer, or the caller's budget is empty.
    """
    credentials = _credentials(visit)
    client = clients.find(credentials.client_id, visit.caller_id)
    method = credentials.method
    # RFC 9700, 2.5: a client that registered a key or a secret must use it.
    if method != client.method:
        raise OAuthError(errors.INVALID_CLIENT, "the client authenticates by another method than it registered")
    if method in SECRET_METHODS and not hmac.compare_digest(digest(credentials.secret), client.secret_digest):
        raise OAuthError(errors.INVALID_CLIENT, "the client's secret is wrong")
    if method == PRIVATE_KEY:
        keys = clients.keys(client, visit.caller_id)
        _check_assertion(visit.parameters["client_assertion"], client, keys, audiences, now)
    return client


def _credentials(visit: Visit) -> Credentials:
    """Read the credentials of a request, which may use one method only."""
    form = visit.parameters
    header = visit.http.headers.get("authorization", "")
    ways = [name for name in ("client_secret", "client_assertion") if name in form]
    if header:
        ways.append("authorization")
    if len(ways) > 1:  # "The client MUST NOT use more than one authentication method in each request."
        raise OAuthError(errors.INVALID_REQUEST, "the request has more than one way of client authentication")
    if header:
        client_id, secret = _basic(header)
        if form.get("client_id", client_id) != client_id:
            raise OAuthError(errors.INVALID_REQUEST, "the request names two clients")
        return Credentials(BASIC, client_id, secret)
    if "client_assertion" in form:
        if form.get("client_assertion_type") != ASSERTION:
            raise OAuthError(errors.INVALID_CLIENT, "client_assertion_type is not that of a JWT")
        return Credentials(PRIVATE_KEY, form.get("client_id") or _subject(form))
    if "client_secret" in form:
        return Credentials(POST, form.get("client_id", ""), form["client_secret"])
    return Credentials(NONE, form.get("client_id", ""))


def _basic(header: str) -> tuple[str, str]:
    scheme, _, encoded = header.partition(" ")
    try:
        client_id, separator, secret = base64.b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:
        separator = ""
    if scheme.lower() != "basic" or not separator:
        raise OAuthError(errors.INVALID_CLIENT, "the Authorization header is not Basic authentication")
    return unquote_plus(client_id), unquote_plus(secret)


def _subject(form: Mapping[str, str]) -> str:
    try:
        return str(json_web_tokens.claims_of(form["client_assertion"]).get("sub", ""))
    except BadToken:
        raise OAuthError(errors.INVALID_CLIENT, "the client assertion is malformed") from None


def _check_assertion(assertion: str, client: Client, keys: Mapping[str, Any], audiences: set[str], now: float) -> None:
    try:
        claims = json_web_tokens.verify(assertion, keys)
    except BadToken:
        raise OAuthError(errors.INVALID_CLIENT, "the client assertion is not signed by a key of the client") from None
    audience = claims.get("aud")
    expires = claims.get("exp")
    named = audience if isinstance(audience, list) else [audience]
    if (claims.get("iss"), claims.get("sub")) != (client.id, client.id):
        raise OAuthError(errors.INVALID_CLIENT, "the client assertion is about another client")
    if not any(isinstance(name, str) and name in audiences for name in named):
        raise OAuthError(errors.INVALID_CLIENT, "the client assertion is for another server")
    # An assertion may be used again until it expires. A thief of one also needs a code or a refresh token.
    if not isinstance(expires, int) or not now - SKEW_SECONDS < expires <= now + MAX_ASSERTION_SECONDS + SKEW_SECONDS:
        raise OAuthError(errors.INVALID_CLIENT, "the client assertion has expired, or lives too long")
