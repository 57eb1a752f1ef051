"""Redirect URIs: which may be registered, and which URI of a request matches a registered one.

    https://example.com/callback      a web site, whose host only its owner controls
    http://127.0.0.1:49152/callback   a program on the user's machine, which listens on a loopback address
    com.example.app:/callback         an application on the user's machine, by its own scheme

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
# The characters of a URI (RFC 3986, section 2) without "#", because a redirect URI has no fragment.
CHARACTERS = r"[A-Za-z0-9._~:/?@!$&'()*+,;=%\[\]-]+"
PORT_AND_REST = r"(?::\d{1,5})?(?P<rest>(?:[/?].*)?)"
LOOPBACK = r"(?P<origin>http://(?:localhost|127\.0\.0\.1|\[::1\]))" + PORT_AND_REST
# The last label of a host begins with a letter: browsers read any other as an IPv4 address ("https://2130706433").
LAST_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
WEB = rf"https://(?P<host>(?:[A-Za-z0-9][A-Za-z0-9.-]*\.)?{LAST_LABEL})" + PORT_AND_REST
APPLICATION = r"(?P<scheme>[a-z][a-z0-9-]*(?:\.[a-z0-9-]+)*):/.*"
ANSWER = {"code", "state", "iss", "error", "error_description"}  # the parameters of this server's answers
# Applications whose scheme has no dot, though RFC 8252 (section 7.1) asks for a domain name in reverse order.
APPLICATIONS = {
    "claude", "cursor", "goose", "jetbrains", "kiro", "raycast", "vscode", "vscode-insiders", "vscodium", "warp",
    "windsurf", "zed",
}  # fmt: skip


def may_be_registered(uri: str) -> bool:
    """Check whether a URI leads to a web site, to this machine, or to an application by its own scheme."""
    if len(uri) > MAX_CHARS or not re.fullmatch(CHARACTERS, uri):
        return False
    if _holds_answer(uri):
        return False
    if re.fullmatch(LOOPBACK, uri) or is_web(uri):
        return True
    application = re.fullmatch(APPLICATION, uri)
    if application is None:
        return False
    scheme = application["scheme"]
    return "." in scheme or scheme in APPLICATIONS


def matches(uri: str, registered: Collection[str]) -> bool:
    """Check whether a URI is a registered one. A program may listen on another loopback port at each start."""
    if uri in registered:
        return True
    portless = _without_port(uri)
    return portless is not None and portless in {_without_port(other) for other in registered}


def is_web(uri: str) -> bool:
    """Check whether a URI leads to a web site. Only then does it prove who the application is.

    Any program may listen on a loopback port, or claim a scheme.
    """
    web = re.fullmatch(WEB, uri)
    if web is None:
        return False
    last_label = web["host"].lower().rpartition(".")[2]
    return last_label != "localhost"


def host(uri: str) -> str:
    """Return where a registered URI leads: a host, or the scheme of an application."""
    web = re.fullmatch(WEB, uri)
    if web:
        return web["host"].lower()
    loopback = re.fullmatch(LOOPBACK, uri)
    if loopback:
        return loopback["origin"].removeprefix("http://")
    return uri.partition(":")[0] + "://"


def with_answer(uri: str, answer: Mapping[str, str]) -> str:
    """Return a registered URI with the parameters of an answer."""
    separator = "&" if "?" in uri else "?"
    return f"{uri}{separator}{urlencode(answer)}"


def _holds_answer(uri: str) -> bool:
    """Check whether a query has a parameter of an answer already. A client could read that one in place of ours."""
    query = uri.partition("?")[2]
    return any(name in ANSWER for name, _value in parse_qsl(query, keep_blank_values=True))


def _without_port(uri: str) -> str | None:
    """Return a loopback URI without its port; None for any other URI."""
    loopback = re.fullmatch(LOOPBACK, uri)
    if loopback is None or not re.fullmatch(CHARACTERS, uri):
        return None
    return loopback["origin"] + loopback["rest"]
