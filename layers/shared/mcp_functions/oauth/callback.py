"""The endpoint `/callback`: the provider sends the browser back, and the front gives the client a code of its own.

The front's code is the provider's code, sealed. It opens only with the same client, redirect URI and resource. `/token`
redeems the provider's code, which is possible once. So the front's code is valid once, too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mcp_functions.oauth import answers, errors
from mcp_functions.oauth.authorization import SignIn
from mcp_functions.oauth.errors import OAuthError
from mcp_functions.oauth.sealed_values import CODE, REQUEST
from mcp_functions.protocol.errors import InvalidRequestState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.http.events import Response
    from mcp_functions.oauth.front import Parts
    from mcp_functions.oauth.visits import Visit

FOUND = 302
# A provider's code (RFC 6749, A.11), without the characters that JSON escapes.
CODE_SYNTAX = r"[!#-\[\]-~]{1,4096}"
# The provider's errors that the client gets. Any other becomes `server_error`.
FORWARDED_ERRORS = {errors.ACCESS_DENIED, errors.TEMPORARILY_UNAVAILABLE}


def receive(visit: Visit, parts: Parts) -> Response:
    """Answer `GET /callback`.

    Raises:
        OAuthError: this browser did not start the sign-in, or another provider answered.
    """
    parameters = visit.parameters
    browser = parts.browsers.recognise(visit)
    if browser is None:
        raise OAuthError(errors.INVALID_REQUEST, "the browser sent no cookie", status=403)
    try:
        claims = parts.values.open(REQUEST, parameters.get("state", ""), visit.caller_id, browser.bound)
    except InvalidRequestState:
        raise OAuthError(errors.INVALID_REQUEST, "this browser did not start the sign-in, or some time ago") from None
    parts.provider.check_issuer(parameters.get("iss"))
    sign_in = SignIn.of(claims)
    answer = _answer(sign_in, claims["seed"], parameters, parts)
    return answers.redirect(FOUND, sign_in.answer_url(parts.settings.url, **answer))


def _answer(sign_in: SignIn, seed: str, parameters: Mapping[str, str], parts: Parts) -> dict[str, str]:
    code = parameters.get("code", "")
    if "error" in parameters or not re.fullmatch(CODE_SYNTAX, code):
        error = _error(parameters.get("error", ""))
        parts.note(error)
        return {"error": error.code, "error_description": error.description}
    claims = {"code": code, "seed": seed, "challenge": sign_in.challenge, "scope": sign_in.scope}
    bound = (sign_in.client, sign_in.redirect, parts.settings.resource)
    return {"code": parts.values.seal(CODE, claims, *bound)}


def _error(code: str) -> OAuthError:
    """Return the error that the client gets in place of the provider's."""
    if code not in FORWARDED_ERRORS:
        code = errors.SERVER_ERROR
    return OAuthError(code, "the provider did not sign the user in")
