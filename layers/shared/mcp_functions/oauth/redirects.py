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
# One character of a URI (RFC 3986, section 2), but no "#": a redirect URI has no fragment.
CHARACTER = r"[A-Za-z0-9._~:/?@!$&'()*+,;=%\[\]-]"
PORT = r"(?: : [0-9]{1,5} )?"
PATH_AND_QUERY = rf"(?P<path_and_query> (?: [/?] {CHARACTER}* )? )"

# The three forms of a redirect URI. "(?x)" lets a pattern have spaces and comments.
# The last label of a host begins with a letter: browsers read any other host as an IPv4 address ("https://2130706433").
WEB = rf"""(?x)
    https://
    (?P<host>
        (?: [A-Za-z0-9] [A-Za-z0-9.-]* \. )?       # the labels before the last one
        [A-Za-z] (?: [A-Za-z0-9-]* [A-Za-z0-9] )?  # the last label
    )
    {PORT} {PATH_AND_QUERY}
"""
LOOPBACK = rf"""(?x)
    (?P<origin> http:// (?: localhost | 127\.0\.0\.1 | \[::1\] ) )
    {PORT} {PATH_AND_QUERY}
"""
OWN_SCHEME = rf"""(?x)
    (?P<scheme> [a-z] [a-z0-9-]* (?: \. [a-z0-9-]+ )* )
    :/ {CHARACTER}*
"""
# RFC 8252 (section 7.1) asks for a scheme that is a domain name in reverse order. These applications have none.
SCHEMES_WITHOUT_DOT = {
    "claude", "cursor", "goose", "jetbrains", "kiro", "raycast", "vscode", "vscode-insiders", "vscodium", "warp",
    "windsurf", "zed",
}  # fmt: skip
ANSWER_PARAMETERS = {"code", "state", "iss", "error", "error_description"}  # this server adds them to a redirect URI


def may_be_registered(uri: str) -> bool:
    """Check whether a URI has one of the three forms, and no parameter that this server will add."""
    if len(uri) > MAX_CHARS or _has_answer_parameter(uri):
        return False
    return is_web(uri) or _has_own_scheme(uri) or re.fullmatch(LOOPBACK, uri) is not None


def matches(uri: str, registered: Collection[str]) -> bool:
    """Check whether a URI is a registered one. A program may listen on another loopback port at each start."""
    return _without_loopback_port(uri) in {_without_loopback_port(each) for each in registered}


def is_web(uri: str) -> bool:
    """Check whether a URI leads to a web site.

    Only the owner of a web site receives what is sent to it. Any program may listen on a loopback port, or claim a
    scheme.
    """
    web = re.fullmatch(WEB, uri)
    if web is None:
        return False
    last_label = web["host"].lower().rpartition(".")[2]
    return last_label != "localhost"


def destination(uri: str) -> str:
    """Return where a registered URI leads: "example.com", "127.0.0.1" or "com.example.app://"."""
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


def _has_own_scheme(uri: str) -> bool:
    """Check whether a URI leads to an application by the application's own scheme."""
    application = re.fullmatch(OWN_SCHEME, uri)
    if application is None:
        return False
    scheme = application["scheme"]
    return "." in scheme or scheme in SCHEMES_WITHOUT_DOT


def _has_answer_parameter(uri: str) -> bool:
    """Check whether a URI has a parameter of an answer already. A client could read that one in place of ours."""
    query = uri.partition("?")[2]
    return any(name in ANSWER_PARAMETERS for name, _value in parse_qsl(query, keep_blank_values=True))


def _without_loopback_port(uri: str) -> str:
    """Return a loopback URI without its port, and any other URI unchanged."""
    loopback = re.fullmatch(LOOPBACK, uri)
    if loopback is None:
        return uri
    return loopback["origin"] + loopback["path_and_query"]
