"""The endpoint `/callback`: the provider sends the browser back, and the browser is sent on to the client.

    GET /callback?code=<the provider's code>&state=<the client's request, sealed by `authorization`>
    302 Location: <the client's redirect URI>?code=<our code>&state=<the client's state>&iss=<our URL>

Our code holds the provider's code, sealed: encrypted and authenticated for the client, its redirect URI and the
resource. Only `/token` redeems the provider's code, which is valid once. So our code is valid once, too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mcp_functions.oauth import responses
from mcp_functions.oauth.errors import OAuthError
from mcp_functions.oauth.sealed_values import CODE, REQUEST
from mcp_functions.oauth.sign_in import SignIn, response_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.http.events import Response
    from mcp_functions.oauth.request import OAuthRequest
    from mcp_functions.oauth.services import Services

# A provider's code: visible ASCII (RFC 6749, A.11) without `"` and the backslash. Our code holds it as JSON, so
# the escapes of these two characters could make it too long.
PROVIDER_CODE = r"[!#-\[\]-~]{1,4096}"
# The client gets these errors of a provider as they are, and any other as "server_error".
FORWARDED_ERRORS = {"access_denied", "temporarily_unavailable"}


def receive(request: OAuthRequest, services: Services) -> Response:
    """Answer `GET /callback`.

    Raises:
        OAuthError: this browser did not start the sign-in, or another provider answered.
    """
    parameters = request.parameters
    browser = services.browsers.require(request)
    claims = services.values.open(REQUEST, parameters.get("state", ""), request.caller_id, browser.digest)
    if claims is None:
        raise OAuthError("invalid_request", "this browser did not start the sign-in, or started it too long ago")
    services.provider.check_issuer(parameters.get("iss"))
    sign_in = SignIn.from_claims(claims)
    response = _make_parameters(sign_in, claims["seed"], parameters, services)
    return responses.make_redirect(302, response_url(sign_in.redirect, sign_in.state, response, services.settings))


def _make_parameters(sign_in: SignIn, seed: str, parameters: Mapping[str, str], services: Services) -> dict[str, str]:
    """Return the parameters for the client: our code, or an error, which is logged."""
    code = parameters.get("code", "")
    if "error" in parameters or not re.fullmatch(PROVIDER_CODE, code):
        error = _error_for_client(parameters.get("error", ""))
        error.note()
        return error.parameters()
    claims = {"code": code, "seed": seed, "challenge": sign_in.challenge, "scope": sign_in.scope}
    return {"code": services.values.seal(CODE, claims, sign_in.client, sign_in.redirect, services.settings.resource)}


def _error_for_client(code: str) -> OAuthError:
    """Return the error for the client. `code` is the provider's error code; "" if it sent neither code nor error."""
    if code not in FORWARDED_ERRORS:
        code = "server_error"
    return OAuthError(code, "the provider did not sign the user in")
