"""The provider: where people sign in. Any OpenID Connect provider that issues access tokens as JWTs.

The front is a client of the provider, with PKCE and a nonce of its own. What the provider issues is checked as this
server's own functions check it: a token that they would refuse is never handed out.
"""

from __future__ import annotations

import base64
import hmac
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote_plus, urlencode, urlsplit

from mcp_functions.aws.connection import Deadline
from mcp_functions.http import access_tokens
from mcp_functions.oauth import https, json_web_tokens
from mcp_functions.oauth.errors import INVALID_GRANT, INVALID_SCOPE, UNSUPPORTED_TOKEN_TYPE, OAuthError
from mcp_functions.oauth.https import Answer, NoAnswer
from mcp_functions.oauth.json_web_tokens import BadToken
from mcp_functions.protocol.errors import Misconfigured, TemporarilyUnavailable, Unauthorized
from mcp_functions.protocol.json_writer import base64url

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.oauth.client_secret import ClientSecret
    from mcp_functions.oauth.settings import FrontSettings

DISCOVERY = "/.well-known/openid-configuration"
SECONDS = 6.0  # for one request to the provider
MAX_BYTES = 128 * 1024
FRESH_SECONDS, RETRY_SECONDS = 3600, 60  # of the metadata and the keys; keys are read again for an unknown signature
SKEW_SECONDS = 60
OK, SERVER_FAULT, TOO_MANY = 200, 500, 429
LOOPBACK = {"localhost", "127.0.0.1", "::1"}
NEEDED = ("authorization_endpoint", "token_endpoint", "jwks_uri")
# Errors of the provider's token endpoint that only its or this stack's configuration can cause.
OPERATOR = {"invalid_client", "unauthorized_client", "invalid_request", "unsupported_grant_type", "invalid_target"}


class Tokens(NamedTuple):
    """What a host gets: the provider's access token, and what it needs to know about it.

    Attributes:
        access_token: as the provider issued it.
        expires_in: seconds.
        scope: that was granted, in this server's words; "" if the provider does not say.
        refresh_token: the provider's own, which only the front may see; "" if it issued none.

    """

    access_token: str
    expires_in: int
    scope: str
    refresh_token: str


class Provider:
    """The provider of this deployment."""

    def __init__(self, settings: FrontSettings, secret: ClientSecret, now: Callable[[], float]) -> None:
        """Keep what requests need; nothing is sent.

        Args:
            settings: of the front.
            secret: this client's secret.
            now: the clock, unix seconds.

        """
        self._settings, self._secret, self._now = settings, secret, now
        self._issuer, self._client = settings.common.jwt_issuer, settings.common.oauth_client_id
        self._kept: dict[str, tuple[float, dict[str, Any]]] = {}

    @property
    def callback(self) -> str:
        """The URI of this front to which the provider sends browsers back."""
        return f"{self._settings.url}/callback"

    def metadata(self) -> dict[str, Any]:
        """Return the provider's metadata.

        Raises:
            TemporarilyUnavailable: the provider does not answer.
            Misconfigured: it is no provider that this front can use.

        """
        found = self._get(self._issuer.rstrip("/") + DISCOVERY, FRESH_SECONDS)
        # RFC 8414, 3.3: "The issuer value returned MUST be identical" to the one that the document was asked for.
        if found.get("issuer") != self._issuer:
            message = "the provider's metadata names another issuer than MCP_JWT_ISSUER"
            raise Misconfigured(message)
        for name in NEEDED:
            _check_url(found.get(name))
        return found

    def authorization_url(self, state: str, seed: str, scope: str, prompt: str) -> str:
        """Return where a browser is sent to sign in.

        Args:
            state: that the provider repeats.
            seed: of this sign-in's PKCE verifier and nonce.
            scope: that the client asked for.
            prompt: that the client asked for; "" if none.

        """
        asked = {
            "response_type": "code",
            "client_id": self._client,
            "redirect_uri": self.callback,
            "scope": self._scope(scope),
            "state": state,
            "nonce": derive(seed, "nonce"),
            "code_challenge": challenge(derive(seed, "verifier")),
            "code_challenge_method": "S256",
        }
        if self._settings.resource_parameter:
            asked[self._settings.resource_parameter] = self._settings.resource
        if prompt:
            asked["prompt"] = prompt
        endpoint = str(self.metadata()["authorization_endpoint"])
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(asked)}"

    def check_issuer(self, issuer: str | None) -> None:
        """Check `iss` of an authorization response (RFC 9207): a mix-up with another provider shows there.

        Raises:
            OAuthError: the response is another provider's.

        """
        if issuer is None and self.metadata().get("authorization_response_iss_parameter_supported") is not True:
            return
        if issuer != self._issuer:
            raise OAuthError(INVALID_GRANT, "the response is of another issuer")

    def redeem(self, code: str, seed: str) -> Tokens:
        """Spend the provider's code.

        Raises:
            OAuthError: the code has been spent, or is too old.
            TemporarilyUnavailable, Misconfigured: the provider does not answer, or not as it has to.

        """
        answer = self._token(
            {
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": self.callback,
                "code_verifier": derive(seed, "verifier"),
            }
        )
        self._check_id_token(answer.get("id_token"), derive(seed, "nonce"))
        return self._tokens(answer)

    def refresh(self, token: str, scope: str) -> Tokens:
        """Get another access token.

        Args:
            token: the provider's refresh token.
            scope: a part of what was granted; "" for all of it.

        Raises:
            OAuthError: the token has been revoked, or has expired.
            TemporarilyUnavailable, Misconfigured: the provider does not answer, or not as it has to.

        """
        form = {"grant_type": "refresh_token", "refresh_token": token}
        return self._tokens(self._token({**form, "scope": self._scope(scope)} if scope else form))

    def revoke(self, token: str) -> None:
        """Revoke the provider's refresh token.

        Raises:
            OAuthError: the provider cannot revoke.
            TemporarilyUnavailable, Misconfigured: the provider does not answer, or not as it has to.

        """
        endpoint = self.metadata().get("revocation_endpoint")
        if endpoint is None:
            raise OAuthError(UNSUPPORTED_TOKEN_TYPE, "the provider cannot revoke tokens")
        _check_url(endpoint)
        answer = self._post(str(endpoint), {"token": token, "token_type_hint": "refresh_token"})
        if answer.status != OK:
            self._refuse(answer)

    def _scope(self, scope: str) -> str:
        """Return the scopes to ask for. `openid` brings the ID token, whose nonce binds the response to the browser."""
        prefixed = [self._settings.scope_prefix + name for name in scope.split()]
        return " ".join(dict.fromkeys(["openid", *self._settings.extra_scopes, *prefixed]))

    def _tokens(self, answer: Mapping[str, Any]) -> Tokens:
        """Check an access token as every function of this server does, and return it.

        A provider that binds its tokens neither to this server nor to this client is refused here.
        """
        token, now = answer.get("access_token"), self._now()
        try:
            claims = json_web_tokens.claims_of(token)
            access_tokens.check(claims, self._settings.common, now)
        except BadToken:
            reason = "provider:access_token_is_no_jwt"
            raise Misconfigured(reason) from None
        except Unauthorized as error:
            reason = f"provider:{error.reason}"
            raise Misconfigured(reason) from None
        scope, refresh_token = answer.get("scope"), answer.get("refresh_token")
        return Tokens(
            access_token=str(token),
            expires_in=max(0, int(claims["exp"] - now)),
            scope=self._granted(scope) if isinstance(scope, str) else "",
            refresh_token=refresh_token if isinstance(refresh_token, str) else "",
        )

    def _granted(self, scope: str) -> str:
        own = {"openid", *self._settings.extra_scopes}
        return " ".join(name.removeprefix(self._settings.scope_prefix) for name in scope.split() if name not in own)

    def _check_id_token(self, token: object, nonce: str) -> None:
        """Check that an ID token belongs to this sign-in (OpenID Connect Core, 3.1.3.7). It goes no further."""
        claims = self._verified(token)
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        expires = claims.get("exp")
        if claims.get("iss") != self._issuer or self._client not in audiences:
            raise OAuthError(INVALID_GRANT, "the ID token is of another issuer, or for another client")
        if len(audiences) > 1 and claims.get("azp") != self._client:
            raise OAuthError(INVALID_GRANT, "the ID token is for another client")
        if not isinstance(expires, int | float) or not expires > self._now() - SKEW_SECONDS:
            raise OAuthError(INVALID_GRANT, "the ID token has expired")
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
            raise OAuthError(INVALID_GRANT, "the ID token is of another sign-in")

    def _verified(self, token: object) -> dict[str, Any]:
        if token is None:
            reason = "provider:no_id_token"
            raise Misconfigured(reason)
        url = str(self.metadata()["jwks_uri"])
        for seconds in (FRESH_SECONDS, RETRY_SECONDS):  # a provider may have changed its keys a moment ago
            try:
                return json_web_tokens.verify(token, self._get(url, seconds))
            except BadToken:
                continue
        raise OAuthError(INVALID_GRANT, "the provider has not signed the ID token")

    def _token(self, form: Mapping[str, str]) -> dict[str, Any]:
        answer = self._post(str(self.metadata()["token_endpoint"]), form)
        if answer.status != OK:
            self._refuse(answer)
        return _json(answer)

    def _refuse(self, answer: Answer) -> None:
        """Raise the error for a response of the provider that is one."""
        if answer.status >= SERVER_FAULT or answer.status == TOO_MANY:
            reason = "provider:unavailable"
            raise TemporarilyUnavailable(reason)
        code = _json(answer).get("error")
        if code in {INVALID_GRANT, INVALID_SCOPE}:
            raise OAuthError(str(code), "the provider does not accept it: it was used, revoked, or has expired")
        if code == "invalid_client":
            self._secret.reset()  # the secret may have been rotated: the next request reads it again
        reason = f"provider:{code if code in OPERATOR else 'unexpected_error'}"
        raise Misconfigured(reason)

    def _post(self, url: str, form: Mapping[str, str]) -> Answer:
        """Send a form with this client's own authentication."""
        secret, headers = self._secret.get(), {"content-type": "application/x-www-form-urlencoded"}
        sent = dict(form)
        methods = self.metadata().get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if secret and "client_secret_basic" in methods:
            pair = f"{quote_plus(self._client)}:{quote_plus(secret)}"  # RFC 6749, 2.3.1
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            sent["client_id"] = self._client
            if secret:
                sent["client_secret"] = secret
        return _request(url, headers, urlencode(sent).encode())

    def _get(self, url: str, seconds: float) -> dict[str, Any]:
        """Return a public document of the provider that is at most so old."""
        _check_url(url)
        since, document = self._kept.get(url, (0.0, {}))
        if document and self._now() < since + seconds:
            return document
        answer = _request(url, {}, None)
        if answer.status != OK:
            reason = "provider:unavailable"
            raise TemporarilyUnavailable(reason)
        document = _json(answer)
        self._kept[url] = (self._now(), document)
        return document


def derive(seed: str, use: str) -> str:
    """Return a secret of one sign-in: its PKCE verifier, or its nonce. Only the front knows the seed."""
    return base64url(hmac.digest(seed.encode(), use.encode(), "sha256"))


def challenge(verifier: str) -> str:
    """Return the S256 challenge of a PKCE verifier (RFC 7636, section 4.2)."""
    import hashlib  # noqa: PLC0415 - imported already where values are sealed

    return base64url(hashlib.sha256(verifier.encode()).digest())


def _check_url(url: object) -> None:
    """Check that a URL of the provider is encrypted; only a provider on this machine may do without."""
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or not parts.hostname:
        message = "the provider's metadata lacks an endpoint"
        raise Misconfigured(message)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        message = "an endpoint of the provider is not https"
        raise Misconfigured(message)


def _request(url: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    reason = "provider:unavailable"
    try:
        connection = https.connect(parts.scheme, str(parts.hostname), port, Deadline.after(SECONDS))
    except OSError:
        raise TemporarilyUnavailable(reason) from None
    try:
        return https.exchange(connection, https.Request(target, headers, body), MAX_BYTES)
    except NoAnswer:
        raise TemporarilyUnavailable(reason) from None


def _json(answer: Answer) -> dict[str, Any]:
    try:
        return answer.json()
    except NoAnswer:
        reason = "provider:no_json"
        raise TemporarilyUnavailable(reason) from None
