"""A browser in which a person signs in: it allows what the consent page asks, and tells the provider a name.

The front is functions/oauth of a server; a host is the application that calls the server for the person.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

import httpx2

SEE_OTHER = 303


class SignInResult(NamedTuple):
    """The end of a sign-in in the browser.

    Attributes:
        page: the consent page.
        url: the URL of the host to which the browser was sent back.
    """

    page: str
    url: str


def sign_in(url: str, name: str) -> SignInResult:
    """Follow a host's link to the front, consent, sign in, and come back to the host."""
    front = "{0.scheme}://{0.netloc}".format(urlsplit(url))
    with httpx2.Client() as browser:
        page = browser.get(url)
        assert page.status_code == 200, page.text
        form = {"request": sealed_form_value(page.text), "decision": "allow"}
        allowed = browser.post(f"{front}/authorize", data=form, headers={"origin": front})
        assert allowed.status_code == SEE_OTHER, allowed.text
        provider = browser.get(f"{allowed.headers['location']}&{urlencode({'login_hint': name})}")
        back = browser.get(provider.headers["location"])
        return SignInResult(page.text, back.headers["location"])


def sealed_form_value(page: str) -> str:
    """Return the sealed value in the form of the consent page."""
    match = re.search(r'name="request" value="([^"]+)"', page)
    assert match, page
    return match[1]
