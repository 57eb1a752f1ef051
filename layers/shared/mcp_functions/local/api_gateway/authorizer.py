"""The JWT authorizer of an HTTP API: it checks access tokens and passes their claims to the function.

Its sources are AWS's documentation ("Control access to HTTP APIs with JWT authorizers") and reports of the real
service: claims reach the function as text, a missing token gets a bare `Bearer`, and no refusal names the resource's
metadata. AWS documents the `error_description` of a wrong audience only; the other texts are this module's.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mcp_functions.local.loopback import json_response
from mcp_functions.oauth import json_web_tokens
from mcp_functions.oauth.json_web_tokens import BadToken

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from mcp_functions.local.loopback import HttpRequest, HttpResponse


class Denied(Exception):
    """The authorizer refuses a request, so it does not reach a function."""

    def __init__(self, response: HttpResponse) -> None:
        """Keep the response for the client."""
        super().__init__(response.status)
        self.response = response


@dataclass(frozen=True)
class JwtAuthorizer:
    """Checks the access token of a request.

    Attributes:
        issuer: the required `iss`.
        audiences: a token must have one of them.
        jwks: returns the issuer's public keys, a JSON Web Key Set.
        now: the clock, unix seconds.
    """

    issuer: str
    audiences: Collection[str]
    jwks: Callable[[], Mapping[str, Any]]
    now: Callable[[], float] = field(default=time.time, kw_only=True)

    def authorize(self, request: HttpRequest) -> dict[str, Any]:
        """Return `requestContext.authorizer` of a request.

        Raises:
            Denied: the token is missing or invalid.
        """
        header = request.header("authorization").strip()
        if not header:
            raise Denied(_unauthorized("Bearer"))
        scheme, _, rest = header.partition(" ")
        token = rest.strip() if scheme.lower() == "bearer" and rest else header
        try:
            claims = json_web_tokens.verify(token, self.jwks())
        except BadToken as bad:
            raise Denied(_invalid(str(bad))) from None  # a refusal is an answer, so the cause says nothing more
        refusal = self._refusal(claims)
        if refusal:
            raise Denied(_invalid(refusal))
        texts = {name: _as_text(value) for name, value in claims.items()}
        return {"jwt": {"claims": texts, "scopes": None}}  # None: the routes of template.yaml require no scopes

    def _refusal(self, claims: Mapping[str, Any]) -> str | None:
        """Return why the claims of a token are refused; None if they are accepted."""
        now = self.now()
        if claims.get("iss") != self.issuer:
            return "invalid issuer"
        # "API Gateway validates client_id only if aud is not present"
        audience = claims["aud"] if "aud" in claims else claims.get("client_id")
        if _texts(audience).isdisjoint(self.audiences):
            return "the token does not have a valid audience"
        if not _is_time(claims.get("exp")) or claims["exp"] <= now:
            return "the token has expired"
        for name in ("nbf", "iat"):
            if name not in claims:
                continue
            if not _is_time(claims[name]) or claims[name] > now:
                return "the token is not valid yet"
        return None


def _unauthorized(challenge: str) -> HttpResponse:
    return json_response(401, {"message": "Unauthorized"}, ("www-authenticate", challenge))


def _invalid(description: str) -> HttpResponse:
    return _unauthorized(f'Bearer scope="" error="invalid_token" error_description="{description}"')


def _texts(claim: object) -> set[str]:
    """Return the texts of a claim that is a text or a list, as `aud` may be."""
    values = claim if isinstance(claim, list) else [claim]
    return {value for value in values if isinstance(value, str)}


def _is_time(claim: object) -> bool:
    return isinstance(claim, int | float) and not isinstance(claim, bool)


def _as_text(claim: object) -> str:
    """Return a claim as API Gateway passes it: a list as "[a b]", any other value as its JSON."""
    if isinstance(claim, str):
        return claim
    if isinstance(claim, list):
        return f"[{' '.join(map(_as_text, claim))}]"
    return json.dumps(claim)
