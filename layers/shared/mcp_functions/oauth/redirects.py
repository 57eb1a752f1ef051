"""Redirect URIs: which may be registered, and which URI of a request matches a registered one.

"Authorization servers MUST validate exact redirect URIs"; only the port of a loopback address may be another (RFC 9700,
section 2.1; RFC 8252, section 7.3).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlencode

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

MAX_CHARS = 512
CHARACTERS = r"[!$-;=?-\[\]_a-z~]+"  # of a URI without a fragment: printable, no quotes, braces or backslashes
LOOPBACK = r"(http://(?:localhost|127\.0\.0\.1|\[::1\]))(?::\d{1,5})?((?:[/?].*)?)"
WEB = r"https://([A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)(?::\d{1,5})?(?:[/?].*)?"
APPLICATION = r"([a-z][a-z0-9+.-]*):/.*"
# Schemes that a browser or a system opens itself: none of them leads to an application that asked for a sign-in.
NOT_APPLICATIONS = {
    "about", "blob", "chrome", "content", "data", "file", "filesystem", "ftp", "http", "https", "intent", "jar",
    "javascript", "mailto", "ms-appx", "sms", "ssh", "tel", "vbscript", "view-source", "ws", "wss",
}  # fmt: skip


def may_be_registered(uri: str) -> bool:
    """Check whether a URI leads to a web site, to this machine, or to an application by its own scheme."""
    if len(uri) > MAX_CHARS or not re.fullmatch(CHARACTERS, uri):
        return False
    if re.fullmatch(LOOPBACK, uri) or re.fullmatch(WEB, uri):
        return True
    application = re.fullmatch(APPLICATION, uri)
    return application is not None and application[1] not in NOT_APPLICATIONS


def matches(uri: str, registered: Collection[str]) -> bool:
    """Check whether a URI is a registered one."""
    if uri in registered:
        return True
    asked = _without_port(uri)
    return asked is not None and asked in map(_without_port, registered)


def is_web(uri: str) -> bool:
    """Check whether a URI leads to a web site. Any program may listen on a loopback port, or claim a scheme."""
    return re.fullmatch(WEB, uri) is not None


def host(uri: str) -> str:
    """Return where a registered URI leads: a host, or the scheme of an application."""
    web = re.fullmatch(WEB, uri)
    if web:
        return web[1].lower()
    loopback = re.fullmatch(LOOPBACK, uri)
    if loopback:
        return loopback[1].removeprefix("http://")
    return uri.partition(":")[0] + "://"


def with_answer(uri: str, answer: Mapping[str, str]) -> str:
    """Return a registered URI with the parameters of an answer."""
    return f"{uri}{'&' if '?' in uri else '?'}{urlencode(answer)}"


def _without_port(uri: str) -> tuple[str, str] | None:
    loopback = re.fullmatch(LOOPBACK, uri)
    if loopback is None or not re.fullmatch(CHARACTERS, uri):
        return None
    return loopback[1], loopback[2]
