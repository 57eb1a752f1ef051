"""Redirect URIs: which may be registered, and which URI of a request matches a registered one.

"Authorization servers MUST validate exact redirect URIs"; only the port of a loopback address may be another (RFC 9700,
section 2.1; RFC 8252, section 7.3).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

MAX_CHARS = 512
CHARACTERS = r"[!$-;=?-\[\]_a-z~]+"  # a URI without a fragment: printable, no quotes, braces or backslashes
LOOPBACK = r"(http://(?:localhost|127\.0\.0\.1|\[::1\]))(?::\d{1,5})?((?:[/?].*)?)"
# The last label of a host begins with a letter: browsers read any other as an IPv4 address ("https://2130706433").
WEB = r"https://((?:[A-Za-z0-9][A-Za-z0-9.-]*\.)?[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?)(?::\d{1,5})?(?:[/?].*)?"
ANSWER = {"code", "state", "iss", "error", "error_description"}  # the parameters that the front adds to a redirect URI
APPLICATION = r"([a-z][a-z0-9-]*(?:\.[a-z0-9-]+)*):/.*"
# Applications whose scheme has no dot, though RFC 8252 (section 7.1) asks for a domain name in reverse order.
APPLICATIONS = {
    "claude", "cursor", "goose", "jetbrains", "kiro", "raycast", "vscode", "vscode-insiders", "vscodium", "warp",
    "windsurf", "zed",
}  # fmt: skip


def may_be_registered(uri: str) -> bool:
    """Check whether a URI leads to a web site, to this machine, or to an application by its own scheme."""
    if len(uri) > MAX_CHARS or not re.fullmatch(CHARACTERS, uri) or _holds_answer(uri):
        return False
    if re.fullmatch(LOOPBACK, uri) or is_web(uri):
        return True
    application = re.fullmatch(APPLICATION, uri)
    return application is not None and ("." in application[1] or application[1] in APPLICATIONS)


def matches(uri: str, registered: Collection[str]) -> bool:
    """Check whether a URI is a registered one."""
    if uri in registered:
        return True
    portless = _without_port(uri)
    return portless is not None and portless in map(_without_port, registered)


def is_web(uri: str) -> bool:
    """Check whether a URI leads to a web site. Any program may listen on a loopback port, or claim a scheme."""
    web = re.fullmatch(WEB, uri)
    return web is not None and web[1].lower().split(".")[-1] != "localhost"


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
    separator = "&" if "?" in uri else "?"
    return f"{uri}{separator}{urlencode(answer)}"


def _holds_answer(uri: str) -> bool:
    """Check whether a query has a parameter of an answer: a host could read that one in place of the front's."""
    return any(name in ANSWER for name, _ in parse_qsl(uri.partition("?")[2], keep_blank_values=True))


def _without_port(uri: str) -> tuple[str, str] | None:
    loopback = re.fullmatch(LOOPBACK, uri)
    if loopback is None or not re.fullmatch(CHARACTERS, uri):
        return None
    return loopback[1], loopback[2]
