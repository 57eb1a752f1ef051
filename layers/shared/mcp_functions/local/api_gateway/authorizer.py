"""The JWT authorizer of an HTTP API: what it lets through, what it tells the function, and how it refuses.

The facts are AWS's documentation ("Control access to HTTP APIs with JWT authorizers") and what is reported of the real
service: claims reach the function as text, a missing token is answered with a bare `Bearer`, and no refusal ever names
the resource's metadata. AWS documents one `error_description`, that of the audience; the others are this file's.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from mcp_functions.local.issuer import jwts
from mcp_functions.local.loopback import json_response

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from mcp_functions.local.loopback import HttpRequest, HttpResponse


class Denied(Exception):
    """The request does not reach a function."""

    def __init__(self, response: HttpResponse) -> None:
        """Take what the client is told."""
        super().__init__(response.status)
        self.response = response


class JwtAuthorizer:
    """Checks the token of every request to a route that carries it."""

    def __init__(
        self,
        issuer: str,
        audiences: Collection[str],
        jwks: Callable[[], Mapping[str, Any]],
        *,
        scopes: Collection[str] = (),
        now: Callable[[], float] = time.time,
    ) -> None:
        """Configure it.

        Args:
            issuer: that tokens must have.
            audiences: one of which a token must be for.
            jwks: fetches the issuer's keys.
            scopes: of the route, one of which a token must grant; none, as in template.yaml, if empty.
            now: the clock, unix seconds.

        """
        self._issuer, self._audiences, self._jwks = issuer, set(audiences), jwks
        self._scopes, self._now = set(scopes), now

    def authorize(self, request: HttpRequest) -> dict[str, Any]:
        """Return `requestContext.authorizer` of a request.

        Raises:
            Denied: it has no token, or a bad one.

        """
        header = request.header("authorization").strip()
        if not header:
            raise Denied(_unauthorized("Bearer"))
        token = header[7:].strip() if header[:7].lower() == "bearer " else header
        try:
            claims = jwts.read(token, self._jwks())
        except jwts.BadToken as bad:
            raise Denied(_invalid(str(bad))) from None
        if wrong := self._wrong(claims):
            raise Denied(_invalid(wrong))
        granted = _words(claims.get("scp")) | _words(claims.get("scope"))
        if self._scopes and not self._scopes & granted:
            challenge = f'Bearer scope="{" ".join(sorted(self._scopes))}" error="insufficient_scope"'
            raise Denied(json_response(403, {"message": "Forbidden"}, ("www-authenticate", challenge)))
        scopes = sorted(self._scopes & granted) or None
        return {"jwt": {"claims": {name: _written(value) for name, value in claims.items()}, "scopes": scopes}}

    def _wrong(self, claims: Mapping[str, Any]) -> str | None:
        now = self._now()
        if claims.get("iss") != self._issuer:
            return "invalid issuer"
        # "API Gateway validates client_id only if aud is not present"
        if not _all(claims["aud"] if "aud" in claims else claims.get("client_id")) & self._audiences:
            return "the token does not have a valid audience"
        if not _is_time(claims.get("exp")) or claims["exp"] <= now:
            return "the token has expired"
        if any(name in claims and not (_is_time(claims[name]) and claims[name] <= now) for name in ("nbf", "iat")):
            return "the token is not valid yet"
        return None


def _unauthorized(challenge: str) -> HttpResponse:
    return json_response(401, {"message": "Unauthorized"}, ("www-authenticate", challenge))


def _invalid(description: str) -> HttpResponse:
    return _unauthorized(f'Bearer scope="" error="invalid_token" error_description="{description}"')


def _all(claim: object) -> set[str]:
    match claim:
        case str():
            return {claim}
        case list():
            return {one for one in claim if isinstance(one, str)}
    return set()


def _words(claim: object) -> set[str]:
    return {word for one in _all(claim) for word in one.split()}


def _is_time(claim: object) -> bool:
    return isinstance(claim, int | float) and not isinstance(claim, bool)


def _written(claim: object) -> str:
    match claim:
        case str():
            return claim
        case list():
            return f"[{' '.join(map(_written, claim))}]"
    return json.dumps(claim)
