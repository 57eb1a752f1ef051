"""The clients of this authorization server: a client id comes in, a checked `Client` goes out.

a name that the operator chose   a pre-registered client, from MCP_OAUTH_CLIENTS
"ks1.…"                          a client that registered; the id holds its metadata, sealed, so none is stored
"https://…"                      a client that publishes a metadata document under this URL
"""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, cast

from mcp_functions import observability
from mcp_functions.oauth import client_metadata, redirects
from mcp_functions.oauth.client_metadata import SECRET_METHODS, Client
from mcp_functions.oauth.errors import OAuthError
from mcp_functions.oauth.sealed_values import CLIENT, PREFIX, SealedValues
from mcp_functions.observability import lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.oauth.documents import Documents
    from mcp_functions.oauth.json_types import KeySet
    from mcp_functions.oauth.settings import OAuthSettings

UNKNOWN = "the client is unknown: register again"


class Clients:
    """Finds clients by their ids, and registers new ones."""

    def __init__(self, settings: OAuthSettings, values: SealedValues, documents: Documents) -> None:
        """Keep the arguments; no client is looked up."""
        self._settings = settings
        self._values = values
        self._documents = documents

    def find(self, client_id: str, caller_id: str, is_in_use: Callable[[], bool] = lambda: False) -> Client:
        """Return the client with an id, which is any text, and note the id for the log line of the request.

        The limits of the caller count the fetch of a document, or a forged id. A registration that has expired counts
        while it `is_in_use`.
        """
        # The log line shows a digest of it as `flow`. An operator blocks a client by the digest, the id or the host.
        observability.current().flow = client_id
        self.check_not_blocked(client_metadata.digest_id(client_id), _site(client_id))
        client = self._look_up(client_id, caller_id, is_in_use)
        # `create` has checked this already, but the operator may have blocked the host after it.
        if self._leads_to_blocked_host(client):
            raise OAuthError(code="invalid_client", description="the host of a redirect URI is blocked")
        return client

    def check_not_blocked(self, id_digest: str, site: str, redirect: str = "") -> None:
        """Check that the operator has blocked neither a client, by its digest or its site, nor where an answer goes."""
        names = self._settings.blocked_clients
        logged = id_digest[: lines.DIGEST_CHARS]  # the log has the digest of an id, cut off
        if site in names or logged in names or logged in map(lines.digest, names):
            raise OAuthError(code="invalid_client", description="the client is blocked")
        if redirect and redirects.destination(redirect) in self._settings.blocked_hosts:
            raise OAuthError(code="invalid_client", description="the host of a redirect URI is blocked")

    def keys(self, client: Client, caller_id: str, *, again: bool = False) -> KeySet:
        """Return the JWK set of a client; with `again`, not the one in memory."""
        if client.keys is not None:
            return client.keys
        return cast("KeySet", self._documents.get(client.keys_url, caller_id, again=again))

    def create(self, metadata: object) -> tuple[Client, str]:
        """Return a new client, and its secret ("" if it has none). Nothing is stored: the id holds the metadata."""
        client = client_metadata.read(metadata)
        if self._leads_to_blocked_host(client):
            raise OAuthError(code="invalid_redirect_uri", description="the host of a redirect URI is blocked")
        secret = ""
        if client.method in SECRET_METHODS:
            secret = secrets.token_urlsafe(32)
            client = client._replace(secret_digest=hash_secret(secret))
        claims = {  # what the id holds; `_registered` reads it
            "generation": self._settings.client_generation,
            "name": client.name,
            "redirects": client.redirect_uris,
            "method": client.method,
            "secret": client.secret_digest,
            "keys": client.keys,
            "keys_url": client.keys_url,
            "salt": secrets.token_urlsafe(9),  # a block or a consent concerns one registration
        }
        return client._replace(id=self._values.seal(CLIENT, claims)), secret

    def _leads_to_blocked_host(self, client: Client) -> bool:
        hosts = {redirects.destination(uri) for uri in client.redirect_uris}
        return not hosts.isdisjoint(self._settings.blocked_hosts)

    def _look_up(self, client_id: str, caller_id: str, is_in_use: Callable[[], bool]) -> Client:
        metadata = self._settings.clients.get(client_id)
        if metadata is not None:
            secret_digest = str(metadata.get("client_secret_sha256", ""))
            return client_metadata.read(metadata, client_id, secret_digest=secret_digest)
        if client_id.startswith(PREFIX):
            return self._registered(client_id, caller_id, is_in_use)
        if client_id.startswith("https://") and self._settings.documents:
            return self._published(client_id, caller_id)
        raise OAuthError(code="invalid_client", description=UNKNOWN)

    def _registered(self, client_id: str, caller_id: str, is_in_use: Callable[[], bool]) -> Client:
        """Read the client that is sealed in an id."""
        claims = self._values.open(CLIENT, client_id, caller_id)
        if claims is None and is_in_use():
            claims = self._values.open(CLIENT, client_id, caller_id, also_expired=True)
        # The id is forged, its registration has expired, or the operator has ended all registrations.
        if claims is None or claims["generation"] != self._settings.client_generation:
            raise OAuthError(code="invalid_client", description=UNKNOWN)
        return Client(
            id=client_id,
            name=claims["name"],
            redirect_uris=tuple(claims["redirects"]),
            method=claims["method"],
            secret_digest=claims["secret"],
            keys=claims["keys"],
            keys_url=claims["keys_url"],
        )

    def _published(self, url: str, caller_id: str) -> Client:
        """Read a metadata document (draft-ietf-oauth-client-id-metadata-document)."""
        document = self._documents.get(url, caller_id)
        # "The client_id property … MUST match the URL of the document using simple string comparison"
        if document.get("client_id") != url:
            raise OAuthError(code="invalid_client", description="the client's metadata document has another client_id")
        client = client_metadata.read(document, url, site=_site(url))
        # "The client_secret … MUST NOT be used": everybody can read the document.
        if client.method in SECRET_METHODS or "client_secret" in document:
            raise OAuthError(
                code="invalid_client_metadata", description="a metadata document cannot have a shared secret"
            )
        return client


def hash_secret(secret: str) -> str:
    """Return the SHA-256 of a client's secret. The secret has 32 random bytes, so a slow hash is not needed."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _site(client_id: str) -> str:
    """Return the host of a metadata document; "" if the id is no URL."""
    if not client_id.startswith("https://"):
        return ""
    return client_id.removeprefix("https://").partition("/")[0].removesuffix(":443")
