"""The metadata of a client (RFC 7591, section 2): JSON comes in, a checked `Client` goes out.

A client registers its metadata, publishes it under a URL, or the operator configures it.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.oauth import redirects
from mcp_functions.oauth.errors import ErrorCode, OAuthError
from mcp_functions.oauth.safe_fetch import may_be_fetched
from mcp_functions.protocol.json_writer import base64url, dumps_ascii

if TYPE_CHECKING:
    from collections.abc import Mapping

# The metadata of a registered client travels in its client id, so it must stay small.
MAX_REDIRECTS = 10  # the redirect URIs of one client
MAX_REDIRECT_CHARS = 1200  # the characters of all its redirect URIs together
MAX_NAME_CHARS = 80  # a longer name is cut
MAX_JWKS_CHARS = 1200  # the characters of a key set that is part of the metadata
# Methods of authentication at the token endpoint, with the names of RFC 7591 and OpenID Connect.
NONE = "none"
BASIC = "client_secret_basic"
POST = "client_secret_post"
PRIVATE_KEY = "private_key_jwt"
SECRET_METHODS = (BASIC, POST)
METHODS = (NONE, *SECRET_METHODS, PRIVATE_KEY)
GRANTS = ("authorization_code", "refresh_token")
# Characters that change the direction of a text or cannot be seen: a name with them could look like another name.
# They are control characters, Unicode's Default_Ignorable_Code_Point (DerivedCoreProperties.txt), and a few others.
INVISIBLE = (
    r"["
    r"\u0000-\u001f\u007f-\u009f"  # control characters
    r"\u00ad"  # soft hyphen
    r"\u034f"  # combining grapheme joiner
    r"\u061c"  # Arabic letter mark
    r"\u115f\u1160\u3164\uffa0"  # Hangul fillers
    r"\u17b4\u17b5"  # inherent vowels of Khmer
    r"\u180b-\u180f"  # selectors and separators of Mongolian
    r"\u200b-\u200f"  # zero-width characters, marks of direction
    r"\u2028\u2029"  # separators of lines and paragraphs
    r"\u202a-\u202e"  # embeddings and overrides of direction
    r"\u2060-\u206f"  # word joiner, invisible operators, isolates of direction
    r"\u2800"  # blank pattern of Braille
    r"\ufe00-\ufe0f\U000e0000-\U000e0fff"  # selectors of variation, tags
    r"\ufeff"  # byte order mark
    r"\ufff0-\ufffb"  # unassigned characters, interlinear annotation
    r"\U0001bca0-\U0001bca3"  # format controls of shorthand
    r"\U0001d173-\U0001d17a"  # format controls of musical notation
    r"]"
)


class Client(NamedTuple):
    """A client of this authorization server."""

    id: str  # the id that the client sends
    name: str  # the unverified name that the client gave itself
    redirect_uris: tuple[str, ...]  # the URIs that the client may use
    method: str = NONE  # the method by which the client authenticates at the token endpoint
    secret_digest: str = ""  # SHA-256 of its secret, in hexadecimal
    keys: Mapping[str, Any] | None = None  # the client's JWK set; None if it has a URL, or needs no keys
    keys_url: str = ""  # the URL of the client's JWK set
    site: str = ""  # the host of its metadata document, which its owner controls; "" for any other client

    @property
    def id_digest(self) -> str:
        """The digest of the id, to which codes and refresh tokens are bound."""
        return base64url(hashlib.sha256(self.id.encode()).digest())

    def may_receive_at(self, uri: str) -> bool:
        """Return whether the client may receive answers at a URI."""
        # A client id is valid for months, so it may have been registered under looser rules than today's.
        return redirects.matches(uri, self.redirect_uris) and redirects.may_be_registered(uri)


def read(metadata: object, client_id: str = "") -> Client:
    """Read the metadata of a client; `client_id` is "" if the client gets its id later.

    Raises:
        OAuthError: the metadata is not that of a client that can sign in here.
    """
    if not isinstance(metadata, dict):
        raise OAuthError(ErrorCode.INVALID_CLIENT_METADATA, "the metadata is not a JSON object")
    method = metadata.get("token_endpoint_auth_method", NONE)
    if method not in METHODS:
        raise OAuthError(ErrorCode.INVALID_CLIENT_METADATA, "token_endpoint_auth_method is not supported")
    _check_flow(metadata)
    key_fields = _key_fields(metadata) if method == PRIVATE_KEY else {}
    return Client(
        id=client_id,
        name=_name(metadata.get("client_name")),
        redirect_uris=_redirect_uris(metadata.get("redirect_uris")),
        method=method,
        **key_fields,
    )


def _check_flow(metadata: Mapping[str, Any]) -> None:
    """Refuse a client that cannot use the authorization code flow, which is the default (RFC 7591, section 2)."""
    for name, needed in (("response_types", "code"), ("grant_types", "authorization_code")):
        offered = metadata.get(name, [needed])
        if not isinstance(offered, list) or needed not in offered:
            raise OAuthError(ErrorCode.INVALID_CLIENT_METADATA, "only the authorization code flow is supported")


def _redirect_uris(uris: object) -> tuple[str, ...]:
    if not isinstance(uris, list) or not uris or not all(isinstance(uri, str) for uri in uris):
        raise OAuthError(ErrorCode.INVALID_REDIRECT_URI, "redirect_uris must be a list of URIs")
    characters = sum(len(uri) for uri in uris)
    if len(uris) > MAX_REDIRECTS or characters > MAX_REDIRECT_CHARS:
        raise OAuthError(ErrorCode.INVALID_REDIRECT_URI, "redirect_uris are too many or too long")
    if not all(redirects.may_be_registered(uri) for uri in uris):
        description = "a redirect URI must be https, http on loopback, or an application's own scheme, without fragment"
        raise OAuthError(ErrorCode.INVALID_REDIRECT_URI, description)
    return tuple(uris)


def _name(name: object) -> str:
    """Return a name that is safe to show: short, on one line, and without invisible characters."""
    if not isinstance(name, str):
        return ""
    unicode = name.encode(errors="replace").decode()  # JSON can hold half of a surrogate pair, and UTF-8 cannot
    visible = re.sub(INVISIBLE, "", unicode)
    return " ".join(visible.split())[:MAX_NAME_CHARS]


def _key_fields(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the field of a `Client` with its JWK set, or the one with the URL of that set."""
    keys = metadata.get("jwks")
    url = metadata.get("jwks_uri")
    if (keys is None) == (url is None):  # "The jwks_uri and jwks parameters MUST NOT both be present" (RFC 7591, 2)
        raise OAuthError(ErrorCode.INVALID_CLIENT_METADATA, "private_key_jwt needs jwks or jwks_uri, and not both")
    if url is not None:
        if not isinstance(url, str) or not may_be_fetched(url):
            raise OAuthError(ErrorCode.INVALID_CLIENT_METADATA, "jwks_uri must be an https URL with a host name")
        return {"keys_url": url}
    if not isinstance(keys, dict) or not isinstance(keys.get("keys"), list):
        raise OAuthError(ErrorCode.INVALID_CLIENT_METADATA, "jwks is not a JWK set")
    if len(dumps_ascii(keys)) > MAX_JWKS_CHARS:
        raise OAuthError(ErrorCode.INVALID_CLIENT_METADATA, "jwks is too long: use jwks_uri")
    return {"keys": {"keys": keys["keys"]}}
