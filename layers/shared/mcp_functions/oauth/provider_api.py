"""Requests to the OpenID Connect provider: its metadata, its keys, and its token and revocation endpoints.

This authorization server sends them, as one client of the provider.

    the provider answers                      this module raises
    nothing, a status >= 500, or 429          TemporarilyUnavailable, because a later request may succeed
    an error of the code or refresh token     OAuthError, because this client needs a new sign-in (REFUSALS)
    any other error                           Misconfigured, because only the operator can mend it
"""

from __future__ import annotations

import base64
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, urlencode, urlsplit

from mcp_functions.aws.connection import Deadline, open_connection
from mcp_functions.aws.endpoints import PORTS
from mcp_functions.oauth import https
from mcp_functions.oauth.errors import OAuthError
from mcp_functions.oauth.https import NoAnswer
from mcp_functions.protocol.errors import Misconfigured, TemporarilyUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.aws.connection import Response
    from mcp_functions.oauth.client_secret import ClientSecret

DISCOVERY = "/.well-known/openid-configuration"
REQUEST_SECONDS = 6.0  # the time limit of one request
CONNECT_SECONDS = 2.0  # the time limit for a connection to one address, and for the TLS handshake
MAX_BYTES = 128 * 1024  # the largest response that is read
FRESH_SECONDS = 3600  # how long metadata and keys stay in memory
UNAVAILABLE = "provider:unavailable"  # for the log
LOOPBACK = {"localhost", "127.0.0.1", "::1"}
REQUIRED_URLS = ("authorization_endpoint", "token_endpoint", "jwks_uri")  # the metadata must have these
GRANT_REFUSED = "the provider refused the code or the refresh token: it was used, was revoked, or has expired"
# The provider's error -> the error and its description for the client.
REFUSALS: dict[str, tuple[str, str]] = {
    "invalid_grant": ("invalid_grant", GRANT_REFUSED),
    # The code is malformed. The operator has nothing to mend: a browser may bring any text to /callback as the code.
    "invalid_request": ("invalid_grant", GRANT_REFUSED),
    "invalid_scope": ("invalid_scope", "the provider does not grant this scope"),
}
# Further errors of the token endpoint (RFC 6749, 5.2, and RFC 8707). Only a wrong configuration causes them.
OPERATOR_ERRORS = {"invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_target"}


class ProviderApi:
    """The provider's endpoints, as one client of the provider sees them."""

    def __init__(self, issuer: str, client_id: str, secret: ClientSecret, now: Callable[[], float]) -> None:
        """Store the arguments; no request is sent yet. `issuer` is the exact text of the provider's metadata."""
        self.issuer = issuer
        self.client_id = client_id
        self._secret = secret
        self._now = now
        self._documents: dict[str, tuple[float, dict[str, Any]]] = {}  # URL -> when it was read (unix seconds), JSON

    def metadata(self) -> dict[str, Any]:
        """Return the provider's metadata.

        Raises:
            TemporarilyUnavailable: the provider does not answer.
            Misconfigured: the metadata is another provider's, or lacks an https endpoint.
        """
        metadata = self._get(self.issuer.rstrip("/") + DISCOVERY, FRESH_SECONDS)
        # RFC 8414, 3.3: "The issuer value returned MUST be identical" to the requested issuer.
        if metadata.get("issuer") != self.issuer:
            raise Misconfigured(reason="the provider's metadata names another issuer than MCP_JWT_ISSUER")
        for name in REQUIRED_URLS:
            _check_url(metadata.get(name))
        return metadata

    def keys(self, max_age: float) -> dict[str, Any]:
        """Return the provider's JWK set; a set in memory must be younger than `max_age` seconds.

        Raises:
            TemporarilyUnavailable, Misconfigured: as `metadata`.
        """
        return self._get(self.metadata()["jwks_uri"], max_age)

    def request_tokens(self, form: Mapping[str, str]) -> dict[str, Any]:
        """Send a form to the token endpoint.

        Raises:
            OAuthError: the provider refuses the code, the refresh token or the scope.
            TemporarilyUnavailable, Misconfigured: as `metadata`.
        """
        return _json(self._post(self.metadata()["token_endpoint"], form))

    def revoke(self, token: str) -> None:
        """Revoke a refresh token.

        Raises:
            OAuthError: the provider cannot revoke.
            TemporarilyUnavailable, Misconfigured: as `metadata`.
        """
        endpoint = self.metadata().get("revocation_endpoint")
        if endpoint is None:
            raise OAuthError(code="unsupported_token_type", description="the provider cannot revoke tokens")
        self._post(endpoint, {"token": token, "token_type_hint": "refresh_token"})

    def _check_status(self, response: Response) -> None:
        """Raise the error of a response that is not 200."""
        if response.status == HTTPStatus.OK:
            return
        if response.status >= HTTPStatus.INTERNAL_SERVER_ERROR or response.status == HTTPStatus.TOO_MANY_REQUESTS:
            raise TemporarilyUnavailable(UNAVAILABLE)
        code = str(_json(response).get("error"))
        if code in REFUSALS:
            raise OAuthError(*REFUSALS[code])
        if code == "invalid_client":
            self._secret.reset()  # the secret may have been rotated: the next request reads it again
        # A code that is no constant of OAuth could be any text, even a secret, so it is not logged.
        logged = code if code in OPERATOR_ERRORS else "unexpected_error"
        raise Misconfigured(reason=f"provider:{logged}")

    def _post(self, url: str, form: Mapping[str, str]) -> Response:
        """Send a form, with this server's own client id and client secret, and check the status of the response."""
        headers = {"content-type": "application/x-www-form-urlencoded"}
        fields = dict(form)
        secret = self._secret.get()
        # RFC 8414, section 2: without this member, the method is client_secret_basic.
        methods = self.metadata().get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if not secret:  # this server is a public client
            fields["client_id"] = self.client_id
        elif "client_secret_basic" in methods:
            pair = f"{quote_plus(self.client_id)}:{quote_plus(secret)}"  # RFC 6749, section 2.3.1
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            fields |= {"client_id": self.client_id, "client_secret": secret}
        response = _request(url, headers, urlencode(fields).encode())
        self._check_status(response)
        return response

    def _get(self, url: str, max_age: float) -> dict[str, Any]:
        """Return a public document of the provider; one in memory must be younger than `max_age` seconds."""
        read_at, document = self._documents.get(url, (0.0, {}))
        if document and self._now() < read_at + max_age:  # an empty document is useless, and is read again
            return document
        response = _request(url, {}, None)
        if response.status != HTTPStatus.OK:
            raise TemporarilyUnavailable(UNAVAILABLE)
        document = _json(response)
        self._documents[url] = (self._now(), document)
        return document


def _check_url(url: object) -> None:
    """Check that a URL of the provider's metadata is https; a provider on this machine may have http."""
    if not isinstance(url, str):
        raise Misconfigured(reason="the provider's metadata lacks an endpoint")
    parts = urlsplit(url)
    if not parts.hostname:
        raise Misconfigured(reason="an endpoint of the provider is not a URL")
    is_local = parts.scheme == "http" and parts.hostname in LOOPBACK
    if parts.scheme != "https" and not is_local:
        raise Misconfigured(reason="an endpoint of the provider is not https")


def _request(url: str, headers: Mapping[str, str], body: bytes | None) -> Response:
    """Send a GET, or a POST if there is a body."""
    _check_url(url)
    parts = urlsplit(url)
    target = parts.path or "/"
    if parts.query:
        target += f"?{parts.query}"
    host = str(parts.hostname)
    port = parts.port or PORTS[parts.scheme]
    try:
        connection = open_connection(parts.scheme, host, port, CONNECT_SECONDS, Deadline(REQUEST_SECONDS))
        return https.exchange(connection, target, MAX_BYTES, headers, body)
    except (OSError, NoAnswer):
        # The cause could quote the response, which may hold a token.
        raise TemporarilyUnavailable(UNAVAILABLE) from None


def _json(response: Response) -> dict[str, Any]:
    try:
        return https.read_json(response)
    except NoAnswer:
        raise TemporarilyUnavailable(reason="provider:no_json") from None
