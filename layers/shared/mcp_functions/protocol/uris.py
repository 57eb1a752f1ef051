"""The normal form of a URI (RFC 3986, section 6.2.2): two URIs that clients take for one have the same normal form.

    Notes://today           notes://today
    rules://docs/müll       rules://docs/m%C3%BCll
    https://Example.com     https://example.com/
    a://b/%7eann/./c        a://b/~ann/c

Clients normalize what they read: the official SDK of Python keeps a URI as pydantic's `AnyUrl`.
"""

from __future__ import annotations

import re
from contextlib import suppress

PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/?#]*))?([^?#]*)(.*)", re.DOTALL)
EXPRESSION = r"\{\+?\w+\}"  # of a template: it stays as it is
# What a URI may hold unencoded: the reserved and the unreserved characters of section 2, and encoded ones.
ENCODED = r"%[0-9A-Fa-f]{2}"
OTHERS = r"[^\w.~:/?#\[\]@!$&'()*+,;=%-]|[^\x00-\x7f]"
UNRESERVED = r"[A-Za-z0-9._~-]"
WEB = {"http": ":80", "https": ":443"}  # "scheme-based normalization" (6.2.3), with "/" for no path


def normal_form(uri: str) -> str:
    """Return the normal form of a URI or of a URI template; a text that is no URI stays unchanged."""
    found = PARTS.fullmatch(re.sub(f"({EXPRESSION})|{ENCODED}|{OTHERS}", _encode, uri))
    if not found:
        return uri
    scheme, authority, path, rest = found.groups()
    scheme = scheme.lower()
    if path.startswith("/"):
        path = _without_dots(path)
    if authority is None:
        return f"{scheme}:{path}{rest}"
    if scheme in WEB:
        path = path or "/"
        authority = authority if "{" in authority else _web_authority(authority, WEB[scheme])
    return f"{scheme}://{authority}{path}{rest}"


def _encode(found: re.Match[str]) -> str:
    """Encode a character that a URI must not hold, and decode one that needs no encoding."""
    text = found[0]
    if found[1]:
        return text
    if not re.fullmatch(ENCODED, text):
        return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "replace"))
    character = chr(int(text[1:], 16))
    return character if re.fullmatch(UNRESERVED, character) else text.upper()


def _web_authority(authority: str, port: str) -> str:
    """Write a host in small letters and in ASCII (RFC 5891), without the port that a scheme implies."""
    user, at, host = authority.removesuffix(port).rpartition("@")
    if "%" in host:
        from urllib.parse import unquote

        with suppress(UnicodeError):  # a label is too long
            host = unquote(host).encode("idna").decode()
    return f"{user}{at}{host.lower()}"


def _without_dots(path: str) -> str:
    """Remove the segments "." and ".." of a path (5.2.4)."""
    segments: list[str] = []
    parts = path.split("/")
    for index, part in enumerate(parts):
        is_last = index == len(parts) - 1
        if part == ".." and len(segments) > 1:
            segments.pop()
        if part not in (".", ".."):
            segments.append(part)
        elif is_last:
            segments.append("")
    return "/".join(segments)
