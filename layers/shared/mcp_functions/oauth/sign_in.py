"""A sign-in: the checked request of a client for a code (RFC 6749, section 4.1.1)."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from mcp_functions.aws.endpoints import PORTS
from mcp_functions.oauth import redirects
from mcp_functions.oauth.errors import OAuthError
from mcp_functions.oauth.settings import PROMPTS
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.oauth.client_metadata import Client
    from mcp_functions.oauth.settings import OAuthSettings

CHALLENGE = r"[A-Za-z0-9_-]{43}"  # a PKCE challenge: SHA-256 in base64url


class SignIn(NamedTuple):
    """A checked request of a client. Sealed, it is in the consent page and in the provider's `state`."""

    client: str  # the digest of the client's id
    redirect: str  # the redirect URI, which gets the code or the error
    state: str  # the client's `state`; "" if it sent none
    challenge: str  # the client's PKCE challenge
    scope: str  # the scope that the client asked for
    prompt: str  # the `prompt` for the provider; "" for none
    consent: str  # the name under which a browser remembers the consent; "" if no browser may
    site: str = ""  # the host of the client's metadata document; "" if it has none

    @classmethod
    def from_claims(cls, claims: Mapping[str, Any]) -> SignIn:
        """Read the claims of a sealed value. It may have more claims than the fields of a sign-in."""
        return cls(**{name: claims[name] for name in cls._fields if name in claims})


def read_sign_in(client: Client, parameters: Mapping[str, str], settings: OAuthSettings) -> SignIn:
    """Check the request of a client that may use its redirect URI."""
    if "request" in parameters or "request_uri" in parameters:
        raise OAuthError(code="request_not_supported", description="request objects are not supported")
    if parameters.get("response_type") != "code":
        raise OAuthError(code="unsupported_response_type", description="only response_type=code is supported")
    if parameters.get("response_mode", "query") != "query":
        raise OAuthError(code="invalid_request", description="only response_mode=query is supported")
    challenge = parameters.get("code_challenge", "")
    # RFC 9700, 2.1.1. Without PKCE a stolen code is enough, and with the method "plain" the challenge is the verifier.
    if parameters.get("code_challenge_method") != "S256" or not re.fullmatch(CHALLENGE, challenge):
        raise OAuthError(
            code="invalid_request", description="PKCE is required: code_challenge, and code_challenge_method=S256"
        )
    check_resource(parameters, settings)
    scope = read_scope(parameters, settings)
    redirect = parameters["redirect_uri"]
    return SignIn(
        client=client.id_digest,
        redirect=redirect,
        state=parameters.get("state", ""),
        challenge=challenge,
        scope=scope,
        prompt=_read_prompt(parameters.get("prompt", "")),
        consent=name_consent(client, redirect, scope),
        site=client.site,
    )


def check_resource(parameters: Mapping[str, str], settings: OAuthSettings) -> None:
    """Check that a token is requested for this server (RFC 8707). A request without a resource means this server."""
    named = parameters.get("resource", settings.resource)
    own = _normalize(settings.resource)
    # A function's own path, "/mcp/add", is a part of this server: a token for the server is for it, too.
    is_ours = bool(own) and re.fullmatch(re.escape(own) + r"(?:/[a-z0-9_-]{1,64})?", _normalize(named)) is not None
    if named != settings.resource and not is_ours:
        raise OAuthError(code="invalid_target", description="the resource is not this server's")


def _normalize(url: str) -> str:
    """Return one spelling of a URL that has several (RFC 3986, 6.2.2 and 6.2.3); "" if it has more than a path."""
    try:
        parts = urlsplit(url)
        port = "" if parts.port in {None, PORTS.get(parts.scheme)} else f":{parts.port}"
    except ValueError:
        return ""
    if parts.query or parts.fragment or parts.username is not None or not parts.hostname:
        return ""
    return f"{parts.scheme}://{parts.hostname}{port}{unquote('' if parts.path == '/' else parts.path)}"


MAX_SCOPE_CHARS = 512
# Many clients ask every server for these scopes of OpenID Connect. They are no scopes of an MCP server.
IGNORED_SCOPES = {"openid", "profile", "email", "address", "phone", "offline_access"}


def read_scope(parameters: Mapping[str, str], settings: OAuthSettings) -> str:
    """Return the scope that a client asks for, each name once; all scopes of this server if it names none."""
    text = parameters.get("scope", "")
    if len(text) > MAX_SCOPE_CHARS:
        raise OAuthError(code="invalid_scope", description="scope is too long")
    supported = settings.common.scopes_supported
    names = [name for name in dict.fromkeys(text.split()) if name not in IGNORED_SCOPES]
    if not set(names).issubset(supported):
        raise OAuthError(code="invalid_scope", description="a scope is not one of this server's")
    return " ".join(supported if settings.all_scopes else names or supported)


def _read_prompt(text: str) -> str:
    names = text.split()
    if "none" in names:  # without a session, this server cannot know whether the user has signed in
        raise OAuthError(code="interaction_required", description="this server always shows a page")
    return " ".join(name for name in names if name in PROMPTS)


def name_consent(client: Client, redirect: str, scope: str) -> str:
    """Return the name under which a browser remembers a consent; "" if no browser may remember it."""
    # Another program on the user's machine could receive at this URI, and get a code without a question.
    if not redirects.is_web(redirect):
        return ""
    scopes = " ".join(sorted(scope.split()))  # the order of the scopes does not count
    consent = f"{client.id}\0{redirect}\0{scopes}"
    return base64url(hashlib.sha256(consent.encode()).digest()[:16])


def consent_of_request(client: Client, parameters: Mapping[str, str], settings: OAuthSettings) -> str:
    """Return the name of the consent that a request would need; "" also if its scope is wrong."""
    try:
        return name_consent(client, parameters["redirect_uri"], read_scope(parameters, settings))
    except OAuthError:
        return ""


def response_url(redirect: str, state: str, response: Mapping[str, str], settings: OAuthSettings) -> str:
    """Return a redirect URI with a code or an error, the client's state if it sent one, and `iss` (RFC 9207)."""
    state_parameter = {"state": state} if state else {}
    return redirects.with_parameters(redirect, {**response, **state_parameter, "iss": settings.url})
