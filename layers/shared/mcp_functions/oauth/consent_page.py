"""The consent page: which client asks, where the code goes, and what it allows. It has no script and loads nothing.

It shows, for example:

    Name, given by the application itself and not verified   Desk
    The answer goes to                                       host.example
    Server                                                   https://mcp.example/mcp
    Access                                                   items.write

    [ ] Do not ask again in this browser
    [Allow] [Cancel]
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from mcp_functions.oauth import redirects

if TYPE_CHECKING:
    from mcp_functions.oauth.client_metadata import Client
    from mcp_functions.oauth.settings import FrontSettings
    from mcp_functions.oauth.sign_in import SignIn

TITLE = "Allow access?"
UNNAMED = "an application without a name"
ELSEWHERE = "Attention: the answer goes to another site than the one that publishes the application."


def render(client: Client, sign_in: SignIn, sealed_sign_in: str, settings: FrontSettings) -> str:
    """Return the content of the page, as HTML. Its form sends `sealed_sign_in` back: the same request, encrypted."""
    name = client.name or UNNAMED
    rows = [("Name, given by the application itself and not verified", name)]
    if client.site:
        rows.append(("Published by", client.site))
    rows += [
        ("The answer goes to", _describe_destination(sign_in.redirect)),
        ("Server", settings.resource),
        ("Access", ", ".join(sign_in.scope.split()) or "everything that you may do there"),
    ]
    details = "".join(f"<dt>{escape(term)}</dt><dd><strong>{escape(text)}</strong></dd>" for term, text in rows)
    warning = f"<p><strong>{ELSEWHERE}</strong></p>" if _leads_elsewhere(client, sign_in.redirect) else ""
    return (
        f"<p>An application asks to use {escape(settings.common.server_name)} in your name.</p>"
        f"<dl>{details}</dl>{warning}"
        "<p>Allow this only if you have just started it yourself. Then you sign in.</p>"
        f'<form method="post" action="{escape(settings.url)}/authorize">'
        f'<input type="hidden" name="request" value="{escape(sealed_sign_in)}">'
        f"{_checkbox(sign_in)}"
        '<p><button name="decision" value="allow">Allow</button> '
        '<button name="decision" value="deny">Cancel</button></p></form>'
    )


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


def _checkbox(sign_in: SignIn) -> str:
    """Return the checkbox with which the user has the browser remember the consent."""
    if not sign_in.consent:  # no browser may remember it
        return ""
    return '<p><label><input type="checkbox" name="remember" value="yes"> Do not ask again in this browser</label></p>'
