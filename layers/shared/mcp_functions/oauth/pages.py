"""The pages that a browser shows: `consent.html`; `cancelled.html` after Cancel; `stopped.html` after an error.

They run nothing and load nothing.

The consent page says which application asks, where the answer goes, and what it allows:

    Name, given by the application itself and not verified   Desk
    The answer goes to                                       host.example
    Server                                                   https://mcp.example/mcp
    Access                                                   items.write

    [ ] Do not ask again in this browser
    [Allow] [Cancel]
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from mcp_functions.oauth import redirects

if TYPE_CHECKING:
    from mcp_functions.oauth.client_metadata import Client
    from mcp_functions.oauth.settings import OAuthSettings
    from mcp_functions.oauth.sign_in import SignIn

FOLDER = Path(__file__).parent
PUBLISHER = "<dt>Published by</dt><dd><strong>{site}</strong></dd>"
WARNING = (
    "<p><strong>Attention: the answer goes to another site than the one that publishes the application.</strong></p>"
)
REMEMBER = '<p><label><input type="checkbox" name="remember" value="yes"> Do not ask again in this browser</label></p>'


def consent_page(client: Client, sign_in: SignIn, sealed_sign_in: str, settings: OAuthSettings) -> str:
    """Return the consent page as HTML. Its form sends `sealed_sign_in` back: the same request, encrypted."""
    texts = {
        "server": settings.common.server_name,
        "name": client.name or "an application without a name",
        "destination": _describe_destination(sign_in.redirect),
        "resource": settings.resource,
        "access": ", ".join(sign_in.scope.split()) or "everything that you may do there",
        "url": settings.url,
        "sealed_sign_in": sealed_sign_in,
    }
    parts = {name: escape(text) for name, text in texts.items()}
    parts["publisher"] = PUBLISHER.format(site=escape(client.site)) if client.site else ""
    parts["warning"] = WARNING if _leads_elsewhere(client, sign_in.redirect) else ""
    parts["remember"] = REMEMBER if sign_in.consent else ""  # else no browser may remember it
    return Template(_read_file("consent.html")).substitute(parts, style=_read_file("style.css"))


def last_page(name: str) -> str:
    """Return "stopped.html" or "cancelled.html". They quote nothing: an attacker may have led the user here."""
    return Template(_read_file(name)).substitute(style=_read_file("style.css"))


def content_security_policy() -> str:
    """Return the Content-Security-Policy of a page: the browser applies the page's own style, and loads nothing.

    It has no form-action: browsers would apply it to every redirect after a form, to the provider and to the client.
    """
    digest = hashlib.sha256(_read_file("style.css").encode()).digest()
    style = f"'sha256-{base64.b64encode(digest).decode()}'"
    return f"default-src 'none'; style-src {style}; base-uri 'none'; frame-ancestors 'none'"


@cache
def _read_file(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _describe_destination(redirect: str) -> str:
    """Describe where a redirect leads. Any program on the user's computer may receive it, so no program is named."""
    place = redirects.destination(redirect)
    if redirects.is_web(redirect):
        return place
    if redirect.startswith("http://"):
        return f"{place} (a program on this computer)"
    return f"{place} (an application on this computer)"


def _leads_elsewhere(client: Client, redirect: str) -> bool:
    """Check whether a redirect leads to another site than the one with the client's metadata document."""
    if not client.site or not redirects.is_web(redirect):
        return False
    return redirects.destination(redirect) != client.site
