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
    from mcp_functions.oauth.request import OAuthRequest

ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"  # RFC 7523, section 2.2
MAX_ASSERTION_SECONDS = 600  # the longest time for which an assertion may still be valid
SKEW_SECONDS = 60  # the difference between two clocks that is allowed


class Credentials(NamedTuple):
    """The credentials of a request, not checked yet."""

    method: str  # one of client_metadata.METHODS
    client_id: str
    secret: str = ""  # the client's secret; "" if the method needs none


def authenticate(request: OAuthRequest, clients: Clients, audiences: set[str], now: float) -> Client:
    """Return the client that sent a request to the token or the revocation endpoint.

    Args:
        request: the request.
        clients: the registry that finds the client.
        audiences: the accepted audiences of assertions: the issuer of this authorization server, and the endpoint.
        now: the current time in unix seconds.

    Raises:
        OAuthError: the client does not prove its identity.
        McpError: KMS does not answer, or the caller's budget is empty.
    """
    credentials = _credentials(request)
    client = clients.find(credentials.client_id, request.caller_id)
    # RFC 9700, 2.5: a client that registered a key or a secret may not do without it.
    if credentials.method != client.method:
        raise OAuthError(errors.INVALID_CLIENT, "the client authenticates by another method than it registered")
    if client.method in SECRET_METHODS and not hmac.compare_digest(digest(credentials.secret), client.secret_digest):
        raise OAuthError(errors.INVALID_CLIENT, "the client's secret is wrong")
    if client.method == PRIVATE_KEY:
        keys = clients.keys(client, request.caller_id)
        _check_assertion(request.parameters["client_assertion"], client, keys, audiences, now)
    return client


def _credentials(request: OAuthRequest) -> Credentials:
    """Read the credentials of a request, which may use one method only."""
    form = request.parameters
    header = request.http.headers.get("authorization", "")
    given = [bool(header), "client_secret" in form, "client_assertion" in form]
    if given.count(True) > 1:  # "The client MUST NOT use more than one authentication method in each request."
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
    """Return the client id and the secret of an Authorization header."""
    scheme, _, encoded = header.partition(" ")
    try:
        client_id, separator, secret = base64.b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:
        separator = ""
    if scheme.lower() != "basic" or not separator:
        raise OAuthError(errors.INVALID_CLIENT, "the Authorization header is not Basic authentication")
    return unquote_plus(client_id), unquote_plus(secret)


def _subject(form: Mapping[str, str]) -> str:
    """Return the client id that an assertion names. Its signature is checked when the client's keys are known."""
    try:
        return str(json_web_tokens.claims_of(form["client_assertion"]).get("sub", ""))
    except BadToken:  # hidden, because the description says the same
        raise OAuthError(errors.INVALID_CLIENT, "the client assertion is malformed") from None


def _check_assertion(assertion: str, client: Client, keys: Mapping[str, Any], audiences: set[str], now: float) -> None:
    """Check a JWT with which a client proves that it has a private key (RFC 7523, section 3)."""
    try:
        claims = json_web_tokens.verify(assertion, keys)
    except BadToken:  # hidden, because the description says the same
        raise OAuthError(errors.INVALID_CLIENT, "the client assertion is not signed by a key of the client") from None
    if claims.get("iss") != client.id or claims.get("sub") != client.id:
        raise OAuthError(errors.INVALID_CLIENT, "the client assertion is about another client")
    audience = claims.get("aud")
    named = audience if isinstance(audience, list) else [audience]
    if not any(isinstance(name, str) and name in audiences for name in named):
        raise OAuthError(errors.INVALID_CLIENT, "the client assertion is for another server")
    # A thief of the assertion may present it until it expires, but needs a code or a refresh token too.
    expires = claims.get("exp")
    latest = now + MAX_ASSERTION_SECONDS + SKEW_SECONDS
    if not isinstance(expires, int) or not now - SKEW_SECONDS < expires <= latest:
        raise OAuthError(errors.INVALID_CLIENT, "the client assertion has expired, or lives too long")
