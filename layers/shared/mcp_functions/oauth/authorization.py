"""The endpoint `/authorize`: check a client's request, show the consent page, and send the browser to the provider.

    GET   begin    checks the request; shows the consent page, or redirects if the browser remembers the consent
    POST  decide   reads the form of the page; redirects to the provider, or back to the client with an error

The front (this authorization server) keeps no session. A checked request, a `SignIn`, travels in the form of the page,
and then in the `state` for the provider. Both times it is sealed: encrypted, authenticated and bound to this browser.

The user consents before the front asks the provider. Many providers sign a user in without a question. A click on a
link would then be enough to give a stranger's client a token ("confused deputy", MCP security best practices).
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from mcp_functions.oauth import answers, consent_page, redirects
from mcp_functions.oauth.browsers import consent_name, new_browser
from mcp_functions.oauth.errors import ErrorCode, OAuthError
from mcp_functions.oauth.sealed_values import CONSENT, REQUEST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.http.events import Response
    from mcp_functions.oauth.browsers import Browser
    from mcp_functions.oauth.client_metadata import Client
    from mcp_functions.oauth.front import Services
    from mcp_functions.oauth.request import OAuthRequest
    from mcp_functions.oauth.settings import FrontSettings

CHALLENGE = r"[A-Za-z0-9_-]{43}"  # a PKCE challenge: SHA-256 in base64url
STATE = r"[ -~]{0,1536}"  # printable ASCII (RFC 6749, appendix A.5); the limit keeps the URLs that carry it short
MAX_SCOPE_CHARS = 512
PROMPTS = {"login", "select_account", "consent"}  # the values of `prompt` that the front passes on to the provider
# Many clients ask every server for these scopes of OpenID Connect. They are no scopes of an MCP server.
IGNORED_SCOPES = {"openid", "profile", "email", "address", "phone", "offline_access"}
SEE_OTHER = 303


class SignIn(NamedTuple):
    """A checked request of a client. Sealed, it is in the consent page and in the provider's `state`."""

    client: str  # the digest of the client's id
    redirect: str  # the redirect URI, which gets the code or the error
    state: str  # the client's `state`; "" if it sent none
    challenge: str  # the client's PKCE challenge
    scope: str  # the scope that the client asked for
    prompt: str  # the `prompt` for the provider; "" for none
    consent: str  # the name under which a browser remembers this consent; "" if it may not

    @classmethod
    def of(cls, claims: Mapping[str, Any]) -> SignIn:
        """Read the claims of a sealed value, which has further claims."""
        return cls(**{name: claims[name] for name in cls._fields})


def begin(request: OAuthRequest, services: Services) -> Response:
    """Answer `GET /authorize`: with the consent page, or with a redirect.

    Raises:
        OAuthError: nothing may be sent to the redirect URI, so the browser shows a page.
    """
    client = _find_client(request, services)
    try:
        sign_in = _check_request(client, request.parameters, services.settings)
    except OAuthError as error:
        if not _may_get_error(client, request, services):
            raise
        return _redirect_error(request.parameters["redirect_uri"], request.parameters.get("state", ""), error, services)
    browser = services.browsers.recognise(request)
    must_ask = "consent" in sign_in.prompt.split()
    if browser and not must_ask and services.browsers.has_consented(request, browser, sign_in.consent):
        return _redirect_to_provider(sign_in, browser, services, cookies=[])
    return _show_consent_page(client, sign_in, browser, services)


def _find_client(request: OAuthRequest, services: Services) -> Client:
    """Return the client of a request. Its redirect URI and `state` are checked, so an error may be sent there."""
    client = services.clients.find(request.parameters.get("client_id", ""), request.caller_id)
    if not client.may_receive_at(request.parameters.get("redirect_uri", "")):
        raise OAuthError(ErrorCode.INVALID_REQUEST, "redirect_uri is not registered for this client")
    if not re.fullmatch(STATE, request.parameters.get("state", "")):  # a client ignores a response without its `state`
        raise OAuthError(ErrorCode.INVALID_REQUEST, "state is too long, or not in ASCII")
    return client


def _show_consent_page(client: Client, sign_in: SignIn, browser: Browser | None, services: Services) -> Response:
    """Ask the user; a browser without a cookie gets one, because the form counts only in the browser of the page."""
    cookies = []
    if browser is None:
        browser = new_browser()
        cookies.append(services.browsers.cookie(browser))
    sealed_sign_in = services.values.seal(CONSENT, sign_in._asdict(), (browser.digest,))
    page = consent_page.render(client, sign_in, sealed_sign_in, services.settings)
    return answers.page(200, consent_page.TITLE, page, cookies)


def decide(request: OAuthRequest, services: Services) -> Response:
    """Answer the form of the consent page, `POST /authorize`.

    Raises:
        OAuthError: the form was not sent by the page, in the browser to which the page was shown.
    """
    headers = request.http.headers
    fetch_site = headers.get("sec-fetch-site", "same-origin")  # older browsers do not send it
    if headers.get("origin") != services.settings.origin or fetch_site != "same-origin":
        raise OAuthError(ErrorCode.INVALID_REQUEST, "the form comes from another site", status=403)
    browser = services.browsers.recognise(request)
    if browser is None:
        raise OAuthError(ErrorCode.INVALID_REQUEST, "the browser sent no cookie", status=403)
    claims = services.values.open(CONSENT, request.parameters.get("request", ""), request.caller_id, (browser.digest,))
    if claims is None:
        raise OAuthError(ErrorCode.INVALID_REQUEST, "the page was not shown to this browser, or was shown too long ago")
    sign_in = SignIn.of(claims)
    if request.parameters.get("decision") != "allow":
        denied = OAuthError(ErrorCode.ACCESS_DENIED, "the user did not consent")
        return _redirect_error(sign_in.redirect, sign_in.state, denied, services)
    cookies = []
    if sign_in.consent and request.parameters.get("remember") == "yes":
        cookies.append(services.browsers.remember(request, browser, sign_in.consent))
    return _redirect_to_provider(sign_in, browser, services, cookies)


def _redirect_to_provider(sign_in: SignIn, browser: Browser, services: Services, cookies: list[str]) -> Response:
    """Send the browser to the provider. The front's PKCE verifier and nonce derive from the seed of this sign-in."""
    seed = secrets.token_urlsafe(32)
    state = services.values.seal(REQUEST, {**sign_in._asdict(), "seed": seed}, (browser.digest,))
    url = services.provider.authorization_url(state, seed, sign_in.scope, sign_in.prompt)
    return answers.redirect(SEE_OTHER, url, cookies)


def _may_get_error(client: Client, request: OAuthRequest, services: Services) -> bool:
    """Check whether the browser may be sent to a client with an error, before the user has done anything.

    Anybody may register a client. If every client got its errors, a link to this front could lead a user to any site
    (RFC 9700, 4.11.2). So only a client of the operator's, or one that this browser has consented to, gets them.
    """
    if client.id in services.settings.clients:
        return True
    browser = services.browsers.recognise(request)
    if browser is None:
        return False
    try:
        scope = _scope(request.parameters.get("scope", ""), services.settings)
    except OAuthError:
        return False
    consent = _consent(client, request.parameters["redirect_uri"], scope)
    return services.browsers.has_consented(request, browser, consent)


def _redirect_error(redirect: str, state: str, error: OAuthError, services: Services) -> Response:
    """Send the browser back to the client with an error."""
    error.note()
    answer = {"error": error.code, "error_description": error.description}
    # After 303 the browser sends a GET; after 307 it would send the page's form to the client (RFC 9700, 4.12).
    return answers.redirect(SEE_OTHER, answer_url(redirect, state, answer, services.settings))


def answer_url(redirect: str, state: str, answer: Mapping[str, str], settings: FrontSettings) -> str:
    """Return a redirect URI with an answer, the client's state if it sent one, and `iss` (RFC 9207)."""
    state_parameter = {"state": state} if state else {}
    return redirects.with_answer(redirect, {**answer, **state_parameter, "iss": settings.url})


def _check_request(client: Client, parameters: Mapping[str, str], settings: FrontSettings) -> SignIn:
    """Check a request whose client and redirect URI are known; its errors go to the client."""
    if "request" in parameters or "request_uri" in parameters:
        raise OAuthError(ErrorCode.REQUEST_NOT_SUPPORTED, "request objects are not supported")
    if parameters.get("response_type") != "code":
        raise OAuthError(ErrorCode.UNSUPPORTED_RESPONSE_TYPE, "only response_type=code is supported")
    if parameters.get("response_mode", "query") != "query":
        raise OAuthError(ErrorCode.INVALID_REQUEST, "only response_mode=query is supported")
    challenge = parameters.get("code_challenge", "")
    # RFC 9700, 2.1.1. Without PKCE a stolen code is enough, and with the method "plain" the challenge is the verifier.
    if parameters.get("code_challenge_method") != "S256" or not re.fullmatch(CHALLENGE, challenge):
        raise OAuthError(ErrorCode.INVALID_REQUEST, "PKCE is required: code_challenge, and code_challenge_method=S256")
    check_resource(parameters, settings)
    scope = _scope(parameters.get("scope", ""), settings)
    redirect = parameters["redirect_uri"]
    return SignIn(
        client=client.id_digest,
        redirect=redirect,
        state=parameters.get("state", ""),
        challenge=challenge,
        scope=scope,
        prompt=_prompt(parameters.get("prompt", "")),
        consent=_consent(client, redirect, scope),
    )


def _consent(client: Client, redirect: str, scope: str) -> str:
    """Return the name under which a browser remembers a consent; "" if it may not."""
    if not redirects.is_web(redirect):  # another program on the user's machine could get the code without a question
        return ""
    return consent_name(client.id, redirect, scope)


def check_resource(parameters: Mapping[str, str], settings: FrontSettings) -> None:
    """Check that a token is requested for this server (RFC 8707), as it is by a request without a resource.

    Raises:
        OAuthError: the request names another resource.
    """
    resource = parameters.get("resource", settings.resource)
    # An empty path and "/" are the same (RFC 3986, 6.2.3), and the URL types of many languages write the second.
    accepted = {settings.resource}
    if not urlsplit(settings.resource).path:
        accepted.add(f"{settings.resource}/")
    if resource not in accepted:
        raise OAuthError(ErrorCode.INVALID_TARGET, "the resource is not this server's")


def _scope(text: str, settings: FrontSettings) -> str:
    """Return the scope that a client asks for, each name once; all scopes of this server if it names none."""
    if len(text) > MAX_SCOPE_CHARS:
        raise OAuthError(ErrorCode.INVALID_SCOPE, "scope is too long")
    supported = settings.common.scopes_supported
    names = [name for name in dict.fromkeys(text.split()) if name not in IGNORED_SCOPES]
    if not set(names).issubset(supported):
        raise OAuthError(ErrorCode.INVALID_SCOPE, "a scope is not one of this server's")
    return " ".join(names or supported)


def _prompt(text: str) -> str:
    names = text.split()
    if "none" in names:  # the front keeps no session, so it cannot know whether the user has signed in
        raise OAuthError(ErrorCode.INTERACTION_REQUIRED, "this server always shows a page")
    return " ".join(name for name in names if name in PROMPTS)
