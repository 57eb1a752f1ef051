"""The provider: any OpenID Connect provider that issues access tokens as JWTs. People sign in there.

The front (this package's authorization server for MCP clients) is a client of the provider. It has a PKCE verifier and
a nonce of its own for each sign-in. It checks the provider's tokens as the MCP functions do, and hands no token out
that they would refuse.
"""

from __future__ import annotations

import hashlib
import hmac
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from mcp_functions.http import access_tokens
from mcp_functions.oauth import errors, json_web_tokens
from mcp_functions.oauth.errors import OAuthError
from mcp_functions.oauth.json_web_tokens import BadToken
from mcp_functions.oauth.provider_api import FRESH_SECONDS
from mcp_functions.protocol.errors import Misconfigured, Unauthorized
from mcp_functions.protocol.json_writer import base64url

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.oauth.provider_api import ProviderApi
    from mcp_functions.oauth.settings import FrontSettings

RETRY_SECONDS = 60  # keys that do not verify a token are read again if they are older than this
SKEW_SECONDS = 60  # the difference between two clocks that is allowed


class Tokens(NamedTuple):
    """The provider's tokens, as far as the front uses them."""

    access_token: str  # the token that the provider issued, unchanged
    expires_in: int  # seconds
    scope: str  # the granted scope, by this server's names of scopes; "" if the provider does not return it
    refresh_token: str  # the provider's refresh token, which only the front may see; "" if it issued none


class Provider:
    """The provider of this deployment."""

    def __init__(self, settings: FrontSettings, api: ProviderApi, now: Callable[[], float]) -> None:
        """Keep the parts; nothing is sent.

        Args:
            settings: the settings of the front.
            api: the provider's endpoints.
            now: the clock, unix seconds.
        """
        self._settings = settings
        self.api = api
        self._now = now

    @property
    def callback(self) -> str:
        """The URI of this front to which the provider sends browsers back."""
        return f"{self._settings.url}/callback"

    def authorization_url(self, state: str, seed: str, scope: str, prompt: str) -> str:
        """Return where a browser is sent to sign in.

        Args:
            state: the `state` that the provider returns unchanged.
            seed: the secret from which this sign-in's PKCE verifier and nonce derive.
            scope: the scope that the client asked for.
            prompt: the `prompt` that the client asked for; "" if none.
        """
        parameters = {
            "response_type": "code",
            "client_id": self.api.client_id,
            "redirect_uri": self.callback,
            "scope": self._scope(scope),
            "state": state,
            "nonce": derive(seed, "nonce"),
            "code_challenge": challenge(derive(seed, "verifier")),
            "code_challenge_method": "S256",
        }
        if self._settings.resource_parameter:
            parameters[self._settings.resource_parameter] = self._settings.resource
        if prompt:
            parameters["prompt"] = prompt
        endpoint = str(self.api.metadata()["authorization_endpoint"])
        separator = "&" if "?" in endpoint else "?"
        return f"{endpoint}{separator}{urlencode(parameters)}"

    def check_issuer(self, issuer: str | None) -> None:
        """Check `iss` of an authorization response (RFC 9207), which reveals a mix-up with another provider.

        Raises:
            OAuthError: the response is another provider's.
        """
        if issuer is None and self.api.metadata().get("authorization_response_iss_parameter_supported") is not True:
            return
        if issuer != self.api.issuer:
            raise OAuthError(errors.INVALID_GRANT, "the response is of another issuer")

    def redeem(self, code: str, seed: str) -> Tokens:
        """Spend the provider's code.

        Raises:
            OAuthError: the code has been spent, or is too old.
            TemporarilyUnavailable, Misconfigured: the provider does not answer, or not as it has to.
        """
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.callback,
            "code_verifier": derive(seed, "verifier"),
        }
        answer = self.api.request_tokens(form)
        self._check_id_token(answer.get("id_token"), derive(seed, "nonce"))
        return self._tokens(answer)

    def refresh(self, token: str, scope: str | None) -> Tokens:
        """Get another access token.

        Args:
            token: the provider's refresh token.
            scope: a part of what was granted; None for all of it, which sends no scope.

        Raises:
            OAuthError: the token has been revoked, or has expired.
            TemporarilyUnavailable, Misconfigured: the provider does not answer, or not as it has to.
        """
        form = {"grant_type": "refresh_token", "refresh_token": token}
        if scope is not None:
            form["scope"] = self._scope(scope)
        return self._tokens(self.api.request_tokens(form))

    def _scope(self, scope: str) -> str:
        """Return the scopes to ask for. `openid` brings the ID token, whose nonce binds the response to the browser."""
        prefixed = [self._settings.common.oauth_scope_prefix + name for name in scope.split()]
        names = ["openid", *self._settings.extra_scopes, *prefixed]
        return " ".join(dict.fromkeys(names))  # each name once, in this order

    def _tokens(self, answer: Mapping[str, Any]) -> Tokens:
        """Check an access token as every function of this server does, and return it.

        A provider that binds its tokens neither to this server nor to this client is refused here.
        """
        token = answer.get("access_token")
        now = self._now()
        # The causes are hidden: for the user's client they would look like faults of its request.
        try:
            claims = json_web_tokens.claims_of(token)
            access_tokens.check_claims(claims, {}, self._settings.common, now)
        except BadToken:
            raise Misconfigured(reason="provider:access_token_is_no_jwt") from None
        except Unauthorized as error:
            raise Misconfigured(reason=f"provider:{error.reason}") from None
        scope = answer.get("scope")
        refresh_token = answer.get("refresh_token")
        return Tokens(
            access_token=str(token),
            expires_in=max(0, int(claims["exp"] - now)),
            scope=self._granted(scope) if isinstance(scope, str) else "",
            refresh_token=refresh_token if isinstance(refresh_token, str) else "",
        )

    def _granted(self, scope: str) -> str:
        """Return the scopes of the provider's answer with this server's names, without those that the front added."""
        added = {"openid", *self._settings.extra_scopes}
        prefix = self._settings.common.oauth_scope_prefix
        names = [name.removeprefix(prefix) for name in scope.split() if name not in added]
        return " ".join(names)

    def _check_id_token(self, token: object, nonce: str) -> None:
        """Check that an ID token belongs to this sign-in (OpenID Connect Core, 3.1.3.7). It goes no further."""
        claims = self._verify(token)
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        if claims.get("iss") != self.api.issuer or self.api.client_id not in audiences:
            raise OAuthError(errors.INVALID_GRANT, "the ID token is of another issuer, or for another client")
        # `azp` names the client that asked for a token with several audiences.
        if len(audiences) > 1 and claims.get("azp") != self.api.client_id:
            raise OAuthError(errors.INVALID_GRANT, "the ID token is for another client")
        expires = claims.get("exp")
        if not isinstance(expires, int | float) or not expires > self._now() - SKEW_SECONDS:
            raise OAuthError(errors.INVALID_GRANT, "the ID token has expired")
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
            raise OAuthError(errors.INVALID_GRANT, "the ID token is of another sign-in")

    def _verify(self, token: object) -> dict[str, Any]:
        """Return the claims of an ID token that the provider has signed."""
        if token is None:
            raise Misconfigured(reason="provider:no_id_token")
        with suppress(BadToken):
            return json_web_tokens.verify(token, self.api.keys(FRESH_SECONDS))
        # The provider may have changed its keys since they were read, so they are read again if they are not new.
        with suppress(BadToken):
            return json_web_tokens.verify(token, self.api.keys(RETRY_SECONDS))
        raise OAuthError(errors.INVALID_GRANT, "the provider has not signed the ID token")


def derive(seed: str, use: str) -> str:
    """Return a secret of one sign-in: its PKCE verifier, or its nonce. Only the front knows the seed."""
    return base64url(hmac.digest(seed.encode(), use.encode(), "sha256"))


def challenge(verifier: str) -> str:
    """Return the S256 challenge of a PKCE verifier (RFC 7636, section 4.2)."""
    return base64url(hashlib.sha256(verifier.encode()).digest())
