"""`/callback`: the provider sends the browser back, and the front answers the client with its own code.

The code holds the provider's code, sealed to client, redirect and resource. Only `/token` redeems the provider's code,
so the front's code is valid once, and for this client alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mcp_functions.oauth import answers
from mcp_functions.oauth.authorization import FOUND, SignIn
from mcp_functions.oauth.errors import (
    ACCESS_DENIED,
    FORBIDDEN,
    INVALID_REQUEST,
    SERVER_ERROR,
    TEMPORARILY_UNAVAILABLE,
    OAuthError,
)
from mcp_functions.oauth.sealed_values import CODE, REQUEST
from mcp_functions.protocol.errors import InvalidRequestState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.http.lambda_types import Response
    from mcp_functions.oauth.front import Parts
    from mcp_functions.oauth.visits import Visit

CODE_SYNTAX = r"[!#-\[\]-~]{1,4096}"  # of a provider's code (RFC 6749, appendix A.11), without what JSON escapes
TOLD = {ACCESS_DENIED, TEMPORARILY_UNAVAILABLE}  # errors of a provider that clients may hear of


def receive(visit: Visit, parts: Parts) -> Response:
    """Answer `GET /callback`.

    Raises:
        OAuthError: this browser did not start the sign-in, or another provider answered.
    """
    asked, browser = visit.parameters, parts.browsers.recognise(visit)
    if browser is None:
        raise OAuthError(INVALID_REQUEST, "the browser sent no cookie", FORBIDDEN)
    try:
        claims = parts.values.open(REQUEST, asked.get("state", ""), visit.payer, browser.bound)
    except InvalidRequestState:
        raise OAuthError(INVALID_REQUEST, "this browser did not start the sign-in, or some time ago") from None
    parts.provider.check_issuer(asked.get("iss"))
    sign_in = SignIn.of(claims)
    return answers.redirect(
        FOUND, sign_in.answered(parts.settings.url, **_answer(sign_in, claims["seed"], asked, parts))
    )


def _answer(sign_in: SignIn, seed: str, asked: Mapping[str, str], parts: Parts) -> dict[str, str]:
    code = asked.get("code", "")
    if "error" in asked or not re.fullmatch(CODE_SYNTAX, code):
        error = asked.get("error")
        told = OAuthError(error if error in TOLD and error else SERVER_ERROR, "the provider did not sign the user in")
        parts.note(told)
        return {"error": told.code, "error_description": told.description}
    claims = {"code": code, "seed": seed, "challenge": sign_in.challenge, "scope": sign_in.scope}
    bound = (sign_in.client, sign_in.redirect, parts.settings.resource)
    return {"code": parts.values.seal(CODE, claims, *bound)}
