"""The metadata of a client (RFC 7591, section 2): JSON comes in, a checked `Client` goes out.

A client registers its metadata, publishes it under a URL, or the operator configures it.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, cast

from mcp_functions.oauth import redirects
from mcp_functions.oauth.documents import may_be_fetched
from mcp_functions.oauth.errors import OAuthError
from mcp_functions.protocol.json_writer import base64url, dumps_ascii
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from mcp_functions.oauth.json_types import ClientMetadata, KeySet

GRANTS = ("authorization_code", "refresh_token")
# How a client may authenticate at the token endpoint (`client_authentication`).
METHODS = ("none", "client_secret_basic", "client_secret_post", "private_key_jwt")
SECRET_METHODS = ("client_secret_basic", "client_secret_post")
MAX_NAME_CHARS = 80
# Characters that Python calls printable, and that cannot be seen: fillers and joiners of some scripts, selectors of
# variants (Unicode's Default_Ignorable_Code_Point), and the blank pattern of Braille.
INVISIBLE = r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
# The metadata of a registered client travels in its client id, so it must stay small.
MAX_REDIRECTS = 10  # the redirect URIs of one client that registers
MAX_REDIRECT_CHARS = 1200  # the characters of all its redirect URIs together
MAX_JWKS_CHARS = 1200  # the characters of a key set that is part of the metadata


class Client(NamedTuple):
    """A client of this authorization server."""

    id: str  # the id that the client sends
    name: str  # the unverified name that the client gave itself
    redirect_uris: tuple[str, ...]  # the URIs that the client may use
    method: str = "none"  # one of METHODS
    secret_digest: str = ""  # SHA-256 of its secret, in hexadecimal
    keys: KeySet | None = None  # the client's JWK set; None if it has a URL, or needs no keys
    keys_url: str = ""  # the URL of the client's JWK set
    site: str = ""  # the host of the client's metadata document; "" if it has none

    @property
    def id_digest(self) -> str:
        """The digest of the id, to which codes and refresh tokens are bound."""
        return digest_id(self.id)

    def may_receive_at(self, uri: str) -> bool:
        """Return whether the client may receive codes and errors at a URI."""
        # A client id is valid for months, so it may have been registered under looser rules than today's.
        return redirects.matches(uri, self.redirect_uris) and redirects.may_be_registered(uri)


def digest_id(client_id: str) -> str:
    """Return the digest of a client's id."""
    return base64url(hashlib.sha256(client_id.encode()).digest())


def read(document: object, client_id: str = "", *, secret_digest: str = "", site: str = "") -> Client:
    """Read the metadata of a client, which is any JSON value. `client_id` is "" if the client gets its id later."""
    if not isinstance(document, dict):
        raise OAuthError(code="invalid_client_metadata", description="the metadata is not a JSON object")
    # RFC 7592, 2.2: "null or JSON null … treated as being omitted"; some hosts write so into a registration, too.
    given = {name: value for name, value in document.items() if value is not None}
    metadata = cast("ClientMetadata", given)
    method = metadata.get("token_endpoint_auth_method", "none")
    if method not in METHODS:
        raise OAuthError(code="invalid_client_metadata", description="token_endpoint_auth_method is not supported")
    _check_flow(metadata)
    keys, keys_url = _read_keys(metadata) if method == "private_key_jwt" else (None, "")
    return Client(
        id=client_id,
        name=_read_name(metadata.get("client_name")),
        redirect_uris=_read_redirect_uris(metadata.get("redirect_uris"), site),
        method=method,
        secret_digest=secret_digest,
        keys=keys,
        keys_url=keys_url,
        site=site,
    )


def _read_name(name: object) -> str:
    """Return a client's name on one line, and without characters by which it could look like another name.

    Such characters cannot be seen, or change the direction of a text. Python calls most of them not printable.
    """
    if not isinstance(name, str):
        return ""
    printable = "".join(character for character in name if character.isprintable() or character.isspace())
    visible = re.sub(INVISIBLE, "", printable)
    return " ".join(visible.split())[:MAX_NAME_CHARS]


def _check_flow(metadata: ClientMetadata) -> None:
    """Refuse a client that cannot use the authorization code flow, which is the default (RFC 7591, section 2)."""
    responses = metadata.get("response_types", ["code"])
    grants = metadata.get("grant_types", ["authorization_code"])
    for offered, needed in ((responses, "code"), (grants, "authorization_code")):
        if not isinstance(offered, list) or needed not in offered:
            raise OAuthError(
                code="invalid_client_metadata", description="only the authorization code flow is supported"
            )


def _read_redirect_uris(uris: object, site: str) -> tuple[str, ...]:
    """Return the redirect URIs. A document has those for other servers, too, so the ones that are refused do not count.

    Others travel in a client id, so they must be few and short.
    """
    if not isinstance(uris, list) or not uris or not all(isinstance(uri, str) for uri in uris):
        raise OAuthError(code="invalid_redirect_uri", description="redirect_uris must be a list of URIs")
    characters = sum(len(uri) for uri in uris)
    if not site and (len(uris) > MAX_REDIRECTS or characters > MAX_REDIRECT_CHARS):
        raise OAuthError(code="invalid_redirect_uri", description="redirect_uris are too many or too long")
    usable = tuple(uri for uri in uris if redirects.may_be_registered(uri))
    if not usable or (len(usable) < len(uris) and not site):
        description = "a redirect URI must be https, http on loopback, or the callback of an application's scheme"
        raise OAuthError(code="invalid_redirect_uri", description=description)
    return usable


def _read_keys(metadata: ClientMetadata) -> tuple[KeySet | None, str]:
    """Return the JWK set of a client and "", or None and the URL of the set."""
    keys = metadata.get("jwks")
    url = metadata.get("jwks_uri")
    # "The jwks_uri and jwks parameters MUST NOT both be present" (RFC 7591, 2)
    if (keys is None) == (url is None):
        raise OAuthError(
            code="invalid_client_metadata", description="private_key_jwt needs jwks or jwks_uri, and not both"
        )
    if url is not None:
        if not isinstance(url, str) or not may_be_fetched(url):
            raise OAuthError(
                code="invalid_client_metadata", description="jwks_uri must be an https URL with a host name"
            )
        return None, url
    if not isinstance(keys, dict) or not isinstance(keys.get("keys"), list):
        raise OAuthError(code="invalid_client_metadata", description="jwks is not a JWK set")
    if len(dumps_ascii(keys)) > MAX_JWKS_CHARS:
        raise OAuthError(code="invalid_client_metadata", description="jwks is too long: use jwks_uri")
    return {"keys": keys["keys"]}, ""
