"""The provider: any OpenID Connect provider that issues access tokens as JWTs. People sign in there.

This authorization server is a client of the provider. It checks the provider's access tokens as the MCP functions do,
and gives no MCP client a token that they would refuse.

For each sign-in it makes a random secret, the seed, from which its own PKCE verifier and nonce derive. The seed travels
encrypted: in the `state` for the provider, then in the code for the MCP client.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from mcp_functions.http import access_tokens
from mcp_functions.oauth import json_web_tokens
from mcp_functions.oauth.errors import OAuthError
from mcp_functions.oauth.json_web_tokens import BadToken
from mcp_functions.protocol import scopes
from mcp_functions.protocol.errors import Misconfigured, Unauthorized
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from mcp_functions.oauth.json_types import TokenClaims, TokenResponse
    from mcp_functions.oauth.provider_api import ProviderApi
    from mcp_functions.oauth.settings import OAuthSettings

SKEW_SECONDS = 60  # the provider's clock may differ by this


class Tokens(NamedTuple):
    """The provider's tokens for this server."""

    access_token: str  # the token that the provider issued, unchanged
    expires_in: int  # seconds
    scope: str  # what it grants of this server's scopes, by this server's names
    refresh_token: str  # the provider's, which no client may see; "" if it issued none


class Provider:
    """The provider of this deployment."""

    def __init__(self, settings: OAuthSettings, api: ProviderApi, now: Callable[[], float]) -> None:
        """Keep the arguments; nothing is sent to the provider. `now` is the clock, in unix seconds."""
        self._settings = settings
        self.api = api
        self._now = now

    @property
    def callback(self) -> str:
        """The URI of this server to which the provider sends browsers back."""
        return f"{self._settings.url}/callback"

    def authorization_url(self, state: str, seed: str, scope: str, prompt: str) -> str:
        """Return where a browser is sent to sign in. `scope` and `prompt` are the client's; `prompt` is "" for none.

        A client's `consent` is left out: the person has just consented here, and Entra ID would ask for an
        administrator. An operator adds it for a provider that gives no refresh token without (OpenID Connect Core, 11).
        """
        parameters = {
            "response_type": "code",
            "client_id": self.api.client_id,
            "redirect_uri": self.callback,
            "scope": self._scope_for_provider(scope),
            "state": state,
            "nonce": derive(seed, "nonce"),
            "code_challenge": challenge(derive(seed, "verifier")),
            "code_challenge_method": "S256",
        }
        # Some providers take the resource as `resource` (RFC 8707), some as `audience`, and some take none.
        if self._settings.resource_parameter:
            parameters[self._settings.resource_parameter] = self._settings.resource
        prompts = [name for name in prompt.split() if name != "consent"]
        if prompts or self._settings.extra_prompt:
            parameters["prompt"] = " ".join(dict.fromkeys([*prompts, *self._settings.extra_prompt]))
        endpoint = self.api.metadata()["authorization_endpoint"]
        separator = "&" if "?" in endpoint else "?"
        return f"{endpoint}{separator}{urlencode(parameters)}"

    def check_issuer(self, issuer: str | None) -> None:
        """Check `iss` of an authorization response (RFC 9207), which reveals a mix-up with another provider."""
        if issuer is None and self.api.metadata().get("authorization_response_iss_parameter_supported") is not True:
            return  # this provider does not send it
        if issuer != self.api.issuer:
            raise OAuthError(code="invalid_grant", description="the response is of another issuer")

    def redeem(self, code: str, seed: str, shown: str) -> Tokens:
        """Exchange the provider's code for tokens; `shown` is the scope that the consent page showed.

        Raises:
            OAuthError: the code has been spent, or is too old; or the token grants more than was shown.
        """
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.callback,
            "code_verifier": derive(seed, "verifier"),
        }
        answer = self.api.request_tokens(form)
        # No client gets the ID token.
        problem = self._problem_of_id_token(self._verify_id_token(answer.get("id_token")), derive(seed, "nonce"))
        if problem:
            raise OAuthError(code="invalid_grant", description=problem)
        return self._read_tokens(answer, shown, shown)

    def refresh(self, token: str, scope: str, shown: str) -> Tokens:
        """Get another access token for the provider's refresh token.

        `shown` is the scope that the consent page showed, and `scope` is that or a part of it.

        Raises:
            OAuthError: the token has been revoked, or has expired; or the new one grants more than was shown.
        """
        form = {"grant_type": "refresh_token", "refresh_token": token}
        # RFC 6749, 6: without a scope, the provider grants all that the user granted. So this server sends a scope only
        # for a part of it. A provider that was asked for "https://example.com/read" may have granted it as "read", and
        # refuse the first name now.
        if set(scope.split()) != set(shown.split()):
            form["scope"] = self._scope_for_provider(scope)
        return self._read_tokens(self.api.request_tokens(form), scope, shown)

    def _scope_for_provider(self, scope: str) -> str:
        """Return the scopes to ask for. With `openid`, the provider also sends an ID token, which has our nonce."""
        prefixed = [self._settings.common.oauth_scope_prefix + name for name in scope.split()]
        names = ["openid", *self._settings.extra_scopes, *prefixed]
        return " ".join(dict.fromkeys(names))  # each name once, in this order

    def _read_tokens(self, answer: TokenResponse, asked: str, shown: str) -> Tokens:
        """Read the tokens of an answer, and check the access token as every function of this server does.

        The check refuses a token that the provider bound neither to this server nor to this client.
        """
        token = answer.get("access_token")
        now = self._now()
        # A bad token is the operator's problem. As BadToken or Unauthorized it would look like the client's.
        try:
            claims = json_web_tokens.unverified_claims(token)
            identity = access_tokens.check_claims(claims, {}, self._settings.common, now)
        except BadToken:
            raise Misconfigured(reason="provider:access_token_is_no_jwt") from None
        except Unauthorized as error:
            raise Misconfigured(reason=f"provider:{error.reason}") from None
        refresh_token = answer.get("refresh_token")
        return Tokens(
            access_token=str(token),
            expires_in=max(0, int(claims["exp"] - now)),
            scope=self._granted_scope(identity.scopes, answer.get("scope"), asked, shown),
            refresh_token=refresh_token if isinstance(refresh_token, str) else "",
        )

    def _granted_scope(self, in_token: Collection[str], answered: object, asked: str, shown: str) -> str:
        """Return which scopes of this server a token grants.

        All MCP clients are one client of the provider. Some providers put into a token whatever that client was ever
        granted, so a client could get a scope that its user did not see.
        """
        common = self._settings.common
        prefix = common.oauth_scope_prefix
        named = [name.removeprefix(prefix) for name in answered.split()] if isinstance(answered, str) else []
        ours = set(common.scopes_supported)
        allowed = scopes.expand({*in_token, *named}, common.scope_hierarchy) & ours
        if not allowed <= scopes.expand(shown.split(), common.scope_hierarchy):
            raise OAuthError(code="invalid_scope", description="the provider grants more than the consent page showed")
        # RFC 6749, 5.1: without `scope` in the answer, all that was asked for is granted.
        granted = scopes.expand(in_token or named or asked.split(), common.scope_hierarchy)
        return " ".join(name for name in common.scopes_supported if name in granted)

    def _problem_of_id_token(self, claims: TokenClaims, nonce: str) -> str | None:
        """Return why an ID token does not belong to this sign-in (OpenID Connect Core, 3.1.3.7); None if it does."""
        audience = claims.get("aud")  # one client id, or a list
        audiences = audience if isinstance(audience, list) else [audience]
        if claims.get("iss") != self.api.issuer or self.api.client_id not in audiences:
            return "the ID token is of another issuer, or for another client"
        # `azp` names the client that asked for a token with several audiences.
        if len(audiences) > 1 and claims.get("azp") != self.api.client_id:
            return "the ID token is for another client"
        expires = claims.get("exp")  # unix seconds
        if not isinstance(expires, int | float) or expires <= self._now() - SKEW_SECONDS:
            return "the ID token has expired"
        is_of_this_sign_in = hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode())
        return None if is_of_this_sign_in else "the ID token is of another sign-in"

    def _verify_id_token(self, token: object) -> TokenClaims:
        """Return the claims of an ID token that the provider has signed."""
        if token is None:
            raise Misconfigured(reason="provider:no_id_token")
        try:
            return json_web_tokens.verify_with(self.api.keys, token)
        except BadToken:
            raise OAuthError(code="invalid_grant", description="the provider has not signed the ID token") from None


def derive(seed: str, use: str) -> str:
    """Return a secret of one sign-in from its seed; `use` is "verifier" or "nonce"."""
    return base64url(hmac.digest(seed.encode(), use.encode(), "sha256"))


def challenge(verifier: str) -> str:
    """Return the S256 challenge of a PKCE verifier (RFC 7636, section 4.2)."""
    return base64url(hashlib.sha256(verifier.encode()).digest())
