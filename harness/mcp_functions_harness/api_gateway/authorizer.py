"""The JWT authorizer of an HTTP API: it checks access tokens, and passes their claims to the function.

This follows AWS's documentation ("Control access to HTTP APIs with JWT authorizers") and reports of the real service:

no token         401, `www-authenticate: Bearer`
invalid token    401, `www-authenticate: Bearer scope="" error="invalid_token" error_description="…"`
valid token      the function gets the claims, each as text

AWS documents the `error_description` of a wrong audience only. The other descriptions are this module's.
"""

import json
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import cast

from mcp_functions.oauth import json_web_tokens
from mcp_functions.oauth.json_types import KeySet, TokenClaims
from mcp_functions.oauth.json_web_tokens import BadToken
from mcp_functions.protocol.event_types import Authorizer
from mcp_functions.protocol.wire_types import JSONObject
from mcp_functions_harness.loopback import HttpRequest, HttpResponse, json_response


class Denied(Exception):
    """The authorizer refuses a request, so it does not reach a function."""

    def __init__(self, response: HttpResponse) -> None:
        """Refuse with a response for the client."""
        super().__init__(response.status)
        self.response = response


@dataclass(frozen=True)
class JwtAuthorizer:
    """Checks the access token of a request."""

    issuer: str  # the required `iss`
    audiences: Collection[str]  # a token's `aud` must have one of them
    jwks: Callable[[], JSONObject]  # returns the issuer's public keys, a JSON Web Key Set
    now: Callable[[], float] = field(default=time.time, kw_only=True)  # unix seconds

    def authorize(self, request: HttpRequest) -> Authorizer:
        """Check the token of a request, and return the value of `requestContext.authorizer` in its event.

        Raises:
            Denied: the token is missing or invalid.
        """
        token = _read_token(request)
        if not token:
            raise Denied(_unauthorized("Bearer"))
        key_set = cast("KeySet", self.jwks())
        try:
            claims = json_web_tokens.verify(token, key_set)
        except BadToken as error:
            raise Denied(_invalid_token(str(error))) from None
        problem = self._find_problem(claims)
        if problem:
            raise Denied(_invalid_token(problem))
        texts = {name: _as_text(value) for name, value in claims.items()}
        return {"jwt": {"claims": texts, "scopes": None}}  # the routes require no scopes

    def _find_problem(self, claims: TokenClaims) -> str:
        """Return why the claims of a token are refused; "" if they are accepted."""
        now = self.now()
        if claims.get("iss") != self.issuer:
            return "invalid issuer"
        # "API Gateway validates client_id only if aud is not present"
        audience = claims["aud"] if "aud" in claims else claims.get("client_id")
        if _strings(audience).isdisjoint(self.audiences):
            return "the token does not have a valid audience"
        if not _is_time(claims.get("exp")) or claims["exp"] <= now:
            return "the token has expired"
        for name in ("nbf", "iat"):
            if name in claims and not (_is_time(claims[name]) and claims[name] <= now):
                return "the token is not valid yet"
        return ""


def _read_token(request: HttpRequest) -> str:
    """Return the token of the header Authorization, which may stand there without "Bearer"; "" if there is none."""
    header = request.header("authorization").strip()
    scheme, _, token = header.partition(" ")
    if scheme.lower() == "bearer" and token:
        return token.strip()
    return header


def _unauthorized(challenge: str) -> HttpResponse:
    return json_response(401, {"message": "Unauthorized"}, ("www-authenticate", challenge))


def _invalid_token(description: str) -> HttpResponse:
    return _unauthorized(f'Bearer scope="" error="invalid_token" error_description="{description}"')


def _strings(claim: object) -> set[str]:
    """Return the strings of a claim that may be a string or a list of strings."""
    values = claim if isinstance(claim, list) else [claim]
    return {value for value in values if isinstance(value, str)}


def _is_time(claim: object) -> bool:
    """Whether a claim is a number; for Python a bool is an int too, but not in JSON."""
    return isinstance(claim, int | float) and not isinstance(claim, bool)


def _as_text(claim: object) -> str:
    """Return a claim as API Gateway passes it: a list as "[a b]", any other value as its JSON."""
    if isinstance(claim, str):
        return claim
    if isinstance(claim, list):
        return f"[{' '.join(map(_as_text, claim))}]"
    return json.dumps(claim)
