"""The metadata of this authorization server: clients find its endpoints there (RFC 8414, OpenID Connect Discovery)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mcp_functions.oauth.client_metadata import GRANTS, METHODS
from mcp_functions.oauth.json_web_tokens import ALGORITHMS

if TYPE_CHECKING:
    from mcp_functions.oauth.json_types import KeySet, ProviderMetadata
    from mcp_functions.oauth.settings import OAuthSettings

AUTHORIZATION_SERVER = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"
KEYS = "/.well-known/jwks.json"
NO_KEYS: KeySet = {"keys": []}  # the provider issues the tokens, so this server signs nothing

SUPPORTED: ProviderMetadata = {
    "response_types_supported": ["code"],
    "response_modes_supported": ["query"],
    "grant_types_supported": list(GRANTS),
    "code_challenge_methods_supported": ["S256"],
    "token_endpoint_auth_methods_supported": list(METHODS),
    "token_endpoint_auth_signing_alg_values_supported": list(ALGORITHMS),
    "revocation_endpoint_auth_methods_supported": list(METHODS),
    "authorization_response_iss_parameter_supported": True,
}
# OpenID Connect Discovery requires these members and `jwks_uri`, although this server issues no ID token.
OPENID_MEMBERS: ProviderMetadata = {
    "subject_types_supported": ["public"],
    "id_token_signing_alg_values_supported": ["RS256"],
}


def documents(settings: OAuthSettings) -> dict[str, ProviderMetadata | KeySet]:
    """Return the documents by their paths.

    The issuer may have a path, for example https://example.com/sign-in. RFC 8414 appends it to the well-known path, and
    OpenID Connect Discovery puts it before that path.
    """
    path = urlsplit(settings.url).path
    metadata = _metadata(settings)
    return {
        AUTHORIZATION_SERVER + path: metadata,
        OPENID + path: metadata,
        path + OPENID: metadata,
        path + KEYS: NO_KEYS,
    }


def _metadata(settings: OAuthSettings) -> ProviderMetadata:
    url = settings.url
    metadata: ProviderMetadata = {
        "issuer": url,
        "authorization_endpoint": f"{url}/authorize",
        "token_endpoint": f"{url}/token",
        "revocation_endpoint": f"{url}/revoke",
        **SUPPORTED,
        "client_id_metadata_document_supported": settings.documents,
        "protected_resources": [settings.resource],
        "jwks_uri": f"{url}{KEYS}",
        **OPENID_MEMBERS,
    }
    if settings.registration:
        metadata["registration_endpoint"] = f"{url}/register"
    if settings.common.scopes_supported:
        metadata["scopes_supported"] = list(settings.common.scopes_supported)
    return metadata
