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
# "(?x)" lets the patterns that hold these two have spaces and comments.
PORT = r"(?: : [0-9]{1,5} )?"
PATH_AND_QUERY = rf"(?P<path_and_query> (?: [/?] {CHARACTER}* )? )"

# The three forms of a redirect URI.
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
OWN_SCHEME = rf"[a-z][a-z0-9-]*(?:\.[a-z0-9-]+)*:/{CHARACTER}*"
# RFC 8252 (section 7.1) asks for a scheme that is a domain name in reverse order. These applications have none. Their
# schemes do more than sign in: "cursor://…/install?config=…" installs a server. So only their callbacks are accepted.
SCHEMES_WITHOUT_DOT = {
    "claude", "cursor", "goose", "jetbrains", "kiro", "raycast", "vscode", "vscode-insiders", "vscodium", "warp",
    "windsurf", "zed",
}  # fmt: skip
CALLBACK = r"""(?x)
    [a-z-]+ : /{1,3} (?: [A-Za-z0-9] [A-Za-z0-9._-]* / )*
    (?: (?: oauth2? [_-]? )? (?: (?: call )? back | cb | redirect ) | oauth2? | (?: did- )? authenticate )
    /? (?: [?] .* )?
"""
RESPONSE_PARAMETERS = {"code", "state", "iss", "error", "error_description"}  # added by this server


def may_be_registered(uri: str) -> bool:
    """Check whether a URI has one of the three forms, and no parameter that this server will add."""
    if len(uri) > MAX_CHARS or _has_response_parameter(uri):
        return False
    return is_web(uri) or re.fullmatch(LOOPBACK, uri) is not None or _has_own_scheme(uri)


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
    return last_label != "localhost"  # the user's machine, also in "app.localhost" (RFC 6761)


def destination(uri: str) -> str:
    """Return where a registered URI leads: "example.com", "127.0.0.1" or "com.example.app://"."""
    web = re.fullmatch(WEB, uri)
    if web:
        return web["host"].lower()
    loopback = re.fullmatch(LOOPBACK, uri)
    if loopback:
        return loopback["origin"].removeprefix("http://")
    return uri.partition(":")[0] + "://"  # as people know a scheme, whatever follows it


def with_parameters(uri: str, parameters: Mapping[str, str]) -> str:
    """Return a registered URI with further parameters."""
    separator = "&" if "?" in uri else "?"
    return f"{uri}{separator}{urlencode(parameters)}"


def _has_own_scheme(uri: str) -> bool:
    """Check whether a URI leads to an application by the application's own scheme."""
    if not re.fullmatch(OWN_SCHEME, uri):
        return False
    scheme = uri.partition(":")[0]
    is_listed = scheme in SCHEMES_WITHOUT_DOT and re.fullmatch(CALLBACK, uri) is not None
    return "." in scheme or is_listed


def _has_response_parameter(uri: str) -> bool:
    """Check whether a URI has a parameter of a response already. A client could read that one in place of ours."""
    query = uri.partition("?")[2]
    return any(name in RESPONSE_PARAMETERS for name, _value in parse_qsl(query, keep_blank_values=True))


def _without_loopback_port(uri: str) -> str:
    """Return a loopback URI without its port, and any other URI unchanged."""
    loopback = re.fullmatch(LOOPBACK, uri)
    if loopback is None:
        return uri
    return loopback["origin"] + loopback["path_and_query"]
