"""Requests to the OpenID Connect provider: its metadata, its keys, and its token and revocation endpoints.

This authorization server sends them, as one client of the provider.

    the provider answers                            this module raises
    nothing, no JSON, an error of its own           TemporarilyUnavailable, because a later request may succeed
    an error of the person, the code or the token   OAuthError, because this client needs a new sign-in (REFUSALS)
    any other error                                 Misconfigured, because only the operator can mend it

tests/oauth/test_provider_errors.py lists what providers document.
"""

from __future__ import annotations

import base64
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote_plus, urlencode, urlsplit

from mcp_functions.aws.connection import Deadline, open_connection
from mcp_functions.aws.endpoints import PORTS
from mcp_functions.oauth import https
from mcp_functions.oauth.copies import Copies
from mcp_functions.oauth.errors import OAuthError
from mcp_functions.oauth.https import NoAnswer
from mcp_functions.protocol.errors import Misconfigured, TemporarilyUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.aws.connection import Response
    from mcp_functions.oauth.client_secret import ClientSecret
    from mcp_functions.oauth.json_types import KeySet, ProviderMetadata, TokenResponse

DISCOVERY = "/.well-known/openid-configuration"
REQUEST_SECONDS = 6.0  # the time limit of one request
CONNECT_SECONDS = 2.0  # the time limit for a connection to one address, and for the TLS handshake
MAX_BYTES = 128 * 1024  # the largest response that is read
FRESH_SECONDS = 3600  # how long metadata and keys are used without another request
UNAVAILABLE = "provider:unavailable"  # for the log
LOOPBACK = {"localhost", "127.0.0.1", "::1"}
GRANT_REFUSED = "the provider refused the code or the refresh token: it was used, was revoked, or has expired"
# Errors about a person, who has to sign in again, or may not sign in (OpenID Connect Core, 3.1.2.6; Entra ID, Auth0).
PERSON_ERRORS = (
    "access_denied", "account_selection_required", "association_required", "consent_required", "expired_token",
    "interaction_required", "invalid_token", "login_required", "mfa_required", "unmet_authentication_requirements",
)  # fmt: skip
# The provider's error -> the error and its description for the client.
REFUSALS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(PERSON_ERRORS, ("invalid_grant", "the provider wants the user to sign in again")),
    "invalid_grant": ("invalid_grant", GRANT_REFUSED),
    # The code is malformed. The operator has nothing to mend: a browser may bring any text to /callback as the code.
    "invalid_request": ("invalid_grant", GRANT_REFUSED),
    "invalid_scope": ("invalid_scope", "the provider does not grant this scope"),
    # RFC 7009, 2.2.1
    "unsupported_token_type": ("unsupported_token_type", "the provider cannot revoke this token"),
}
# Errors of the provider itself, also with a status below 500 (RFC 6749, 4.1.2.1; RFC 8628, 3.5).
TROUBLE = {"server_error", "slow_down", "temporarily_unavailable", "too_many_requests"}
# Further errors of the token endpoint (RFC 6749, 5.2; RFC 8707; Entra ID). Only a wrong configuration causes them.
OPERATOR_ERRORS = {
    "invalid_client", "invalid_resource", "invalid_target", "unauthorized_client", "unsupported_grant_type",
}  # fmt: skip


class ProviderApi:
    """The provider's endpoints, as one client of the provider sees them."""

    def __init__(self, issuer: str, client_id: str, secret: ClientSecret, now: Callable[[], float]) -> None:
        """Store the arguments; no request is sent yet. `issuer` is the exact text of the provider's metadata."""
        self.issuer = issuer
        self.client_id = client_id
        self._secret = secret
        self._copies = Copies(now, FRESH_SECONDS)

    def metadata(self) -> ProviderMetadata:
        """Return the provider's metadata."""
        return self._copies.get(self.issuer.rstrip("/") + DISCOVERY, self._read_metadata)

    def keys(self, *, again: bool = False) -> KeySet:
        """Return the provider's JWK set; with `again`, not the one in memory. It raises as `metadata` does."""
        return self._copies.get(self.metadata()["jwks_uri"], _read_keys, again=again)

    def request_tokens(self, form: Mapping[str, str]) -> TokenResponse:
        """Send a form to the token endpoint."""
        return cast("TokenResponse", _json(self._post(self.metadata()["token_endpoint"], form)))

    def revoke(self, token: str) -> None:
        """Revoke a refresh token."""
        endpoint = self.metadata().get("revocation_endpoint")
        if endpoint is None:
            raise OAuthError(code="unsupported_token_type", description="the provider cannot revoke tokens")
        self._post(endpoint, {"token": token, "token_type_hint": "refresh_token"})

    def _check_status(self, response: Response) -> None:
        """Raise the error of a response that is not 200."""
        if response.status == HTTPStatus.OK:
            return
        code = "" if https.may_succeed_later(response.status) else _json(response).get("error")
        # Without a code, it is not RFC 6749 that answers.
        if not code or not isinstance(code, str) or code in TROUBLE:
            raise TemporarilyUnavailable(UNAVAILABLE)
        if code in REFUSALS:
            raise OAuthError(*REFUSALS[code])
        if code == "invalid_client":
            self._secret.reset()  # it may have been rotated: the next request reads it again
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

    def _read_metadata(self, url: str) -> ProviderMetadata:
        """Read the metadata. What fails a check is not kept in memory, because it may soon be mended."""
        metadata = cast("ProviderMetadata", _read_document(url))
        # RFC 8414, 3.3: "The issuer value returned MUST be identical" to the requested issuer.
        if metadata.get("issuer") != self.issuer:
            raise Misconfigured(reason="the provider's metadata names another issuer than MCP_JWT_ISSUER")
        for endpoint in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            _check_url(metadata.get(endpoint))
        return metadata


def _read_keys(url: str) -> KeySet:
    key_set = _read_document(url)
    if not isinstance(key_set.get("keys"), list):
        raise Misconfigured(reason="the provider's jwks_uri has no key set")
    return cast("KeySet", key_set)


def _read_document(url: str) -> dict[str, Any]:
    """Read a public document of the provider."""
    response = _request(url, {}, None)
    if response.status != HTTPStatus.OK:
        raise TemporarilyUnavailable(UNAVAILABLE)
    return _json(response)


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
        raise TemporarilyUnavailable(UNAVAILABLE) from None  # the cause could quote a token


def _json(response: Response) -> dict[str, Any]:
    try:
        return https.read_json(response)
    except NoAnswer:
        raise TemporarilyUnavailable(reason="provider:no_json") from None
