"""The endpoints for the user's browser: from the client to the provider, where the user signs in, and back.

    GET  /authorize   begin    checks the request; shows the consent page, or redirects if the browser remembers the
                               consent
    POST /authorize   decide   reads the form of the page; redirects to the provider, or to the client with an error
    GET  /callback    finish   takes the provider's code, and redirects to the client with a code of this server

This server keeps no session. A checked request, a `SignIn`, travels in the form of the page, and then in the `state`
for the provider. Both times it is sealed: encrypted, authenticated and bound to this browser. Each step checks again
that the operator has not blocked the client meanwhile. The code for the client is the provider's code, sealed for the
client and the resource. Only `/token` redeems the provider's code, which is valid once. So the code for the client is
valid once, too.

The user consents before the browser goes to the provider. Many providers sign a user in without a question. A click on
a link would then be enough to give a stranger's client a token ("confused deputy", MCP security best practices).
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING

from mcp_functions.oauth import pages, responses
from mcp_functions.oauth.client_metadata import digest_id
from mcp_functions.oauth.errors import OAuthError
from mcp_functions.oauth.provider_api import PERSON_ERRORS
from mcp_functions.oauth.sealed_values import CODE, CONSENT, REQUEST
from mcp_functions.oauth.sign_in import SignIn, consent_of_request, read_sign_in, response_url

if TYPE_CHECKING:
    from mcp_functions.oauth.browsers import Browser
    from mcp_functions.oauth.client_metadata import Client
    from mcp_functions.oauth.json_types import CodeClaims
    from mcp_functions.oauth.request import OAuthRequest
    from mcp_functions.oauth.sealed_values import Purpose
    from mcp_functions.oauth.services import Services
    from mcp_functions.protocol.event_types import Response

# Printable ASCII (RFC 6749, appendix A.5). The limit keeps the URLs that carry it short.
STATE = r"[ -~]{0,2048}"
# A provider's code: visible ASCII (RFC 6749, A.11) without `"` and the backslash. Our code holds it as JSON, so the
# escapes of these two characters could make it too long.
PROVIDER_CODE = r"[!#-\[\]-~]{1,4096}"
# The provider's error -> the client's. A client gets any other error as "server_error".
FORWARDED_ERRORS = {
    **dict.fromkeys(PERSON_ERRORS, "access_denied"),
    "temporarily_unavailable": "temporarily_unavailable",
}

LATE_FORM = "the page was not shown to this browser, or was shown too long ago"
LATE_CALLBACK = "this browser did not start the sign-in, or started it too long ago"


def begin(request: OAuthRequest, services: Services) -> Response:
    """Answer `GET /authorize`: the consent page, a redirect, or an OAuthError if nothing may go to the redirect URI."""
    client = _find_client(request, services)
    try:
        sign_in = read_sign_in(client, request.parameters, services.settings)
    except OAuthError as error:
        consent = consent_of_request(client, request.parameters, services.settings)
        if not _may_get_errors(client.id_digest, consent, request, services):
            raise
        return _redirect_error(request.parameters["redirect_uri"], request.parameters.get("state", ""), error, services)
    browsers = services.browsers.recognise(request)
    must_ask = "consent" in sign_in.prompt.split()
    if not must_ask and services.browsers.has_consented(request, sign_in.consent):
        return _redirect_to_provider(sign_in, browsers[0], services, cookies=[])
    return _show_consent_page(client, sign_in, browsers[0] if browsers else services.browsers.new(), request, services)


def _find_client(request: OAuthRequest, services: Services) -> Client:
    """Find the client of a request. Check its redirect URI and its `state`, which each response to the client needs."""
    client = services.clients.find(request.parameters.get("client_id", ""), request.caller_id)
    if not client.may_receive_at(request.parameters.get("redirect_uri", "")):
        raise OAuthError(code="invalid_request", description="redirect_uri is not registered for this client")
    if not re.fullmatch(STATE, request.parameters.get("state", "")):
        raise OAuthError(code="invalid_request", description="state is too long, or not in ASCII")
    return client


def _may_get_errors(client_digest: str, consent: str, request: OAuthRequest, services: Services) -> bool:
    """Check whether the browser may be sent to a client with an error, before the user has allowed anything.

    Anybody may register a client. If every client got its errors, a link to this server could lead a user to any site
    or application (RFC 9700, 4.11.2). So a client gets them only if the operator listed it, or if this browser has
    consented to it.
    """
    is_listed = client_digest in map(digest_id, services.settings.clients)
    return is_listed or services.browsers.has_consented(request, consent)


def _show_consent_page(
    client: Client, sign_in: SignIn, browser: Browser, request: OAuthRequest, services: Services
) -> Response:
    """Ask the user. Only this browser can send the form of the page."""
    sealed_sign_in = services.browsers.seal(CONSENT, sign_in._asdict(), browser)
    page = pages.consent_page(client, sign_in, sealed_sign_in, services.settings)
    cookies = services.browsers.cookies(request, browser)
    # With no-referrer, a browser would send `Origin: null` with the form of the page.
    return responses.make_page(200, page, cookies, referrer_policy="same-origin")


def _open_sign_in(
    purpose: Purpose, value: str, refusal: str, request: OAuthRequest, services: Services
) -> tuple[Browser, SignIn, str]:
    """Return the browser of a sealed sign-in, the sign-in, and its seed: "" before the browser went to the provider."""
    opened = services.browsers.open(purpose, value, request)
    if opened is None:
        raise OAuthError(code="invalid_request", description=refusal)
    browser, claims = opened
    sign_in = SignIn.from_claims(claims)
    services.clients.check_not_blocked(sign_in.client, sign_in.site, sign_in.redirect)
    return browser, sign_in, claims.get("seed", "")


def decide(request: OAuthRequest, services: Services) -> Response:
    """Answer the form of the consent page, `POST /authorize`; OAuthError if another page or browser sent it."""
    headers = request.http.headers
    fetch_site = headers.get("sec-fetch-site", "same-origin")  # older browsers do not send it
    if headers.get("origin") != services.settings.origin or fetch_site != "same-origin":
        raise OAuthError(code="invalid_request", description="the form comes from another site", status=403)
    form = request.parameters
    browser, sign_in, _seed = _open_sign_in(CONSENT, form.get("request", ""), LATE_FORM, request, services)
    if form.get("decision") != "allow":
        denied = OAuthError(code="access_denied", description="the user did not consent")
        if _may_get_errors(sign_in.client, sign_in.consent, request, services):
            return _redirect_error(sign_in.redirect, sign_in.state, denied, services)
        denied.note()
        return responses.make_page(200, pages.last_page("cancelled.html"))
    cookies = []
    if sign_in.consent and form.get("remember") == "yes":
        cookies.append(services.browsers.remember(request, browser, sign_in.consent))
    return _redirect_to_provider(sign_in, browser, services, cookies)


def _redirect_to_provider(sign_in: SignIn, browser: Browser, services: Services, cookies: list[str]) -> Response:
    """Send the browser to the provider. Our PKCE verifier and nonce for the provider derive from a new seed."""
    seed = secrets.token_urlsafe(32)
    state = services.browsers.seal(REQUEST, {**sign_in._asdict(), "seed": seed}, browser)
    url = services.provider.authorization_url(state, seed, sign_in.scope, sign_in.prompt)
    return responses.make_redirect(303, url, cookies)


def _redirect_error(redirect: str, state: str, error: OAuthError, services: Services) -> Response:
    """Send the browser back to the client with an error."""
    error.note()
    # After 303 the browser sends a GET; after 307 it would send the page's form to the client (RFC 9700, 4.12).
    return responses.make_redirect(303, response_url(redirect, state, error.parameters(), services.settings))


def finish(request: OAuthRequest, services: Services) -> Response:
    """Answer `GET /callback`; OAuthError if this browser did not start the sign-in, or another provider answered."""
    parameters = request.parameters
    _browser, sign_in, seed = _open_sign_in(REQUEST, parameters.get("state", ""), LATE_CALLBACK, request, services)
    services.provider.check_issuer(parameters.get("iss"))
    code = parameters.get("code", "")
    if "error" in parameters or not re.fullmatch(PROVIDER_CODE, code):
        error_code = FORWARDED_ERRORS.get(parameters.get("error", ""), "server_error")
        error = OAuthError(code=error_code, description="the provider did not sign the user in")
        error.note()
        response = error.parameters()
    else:
        claims: CodeClaims = {
            "code": code,
            "seed": seed,
            "challenge": sign_in.challenge,
            "scope": sign_in.scope,
            "redirect": sign_in.redirect,
        }
        response = {"code": services.values.seal(CODE, claims, sign_in.client, "", services.settings.resource)}
    return responses.make_redirect(302, response_url(sign_in.redirect, sign_in.state, response, services.settings))
