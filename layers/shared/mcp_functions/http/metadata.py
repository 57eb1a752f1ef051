"""Protected resource metadata (RFC 9728), which tells a client where to get an access token.

All of it comes from the configuration and none from the Host header: an attacker who could choose the Host header could
choose the authorization server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from urllib.parse import SplitResult

    from mcp_functions.settings import Settings

ROOT = "/.well-known/oauth-protected-resource"


def documents(settings: Settings, scopes: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the metadata under both paths at which clients look for it; nothing if callers need no token.

    "MCP servers MUST implement OAuth 2.0 Protected Resource Metadata" (basic/authorization). A client tries the path of
    the endpoint first, then the root ("Authorization server discovery").
    """
    if not settings.takes_tokens:
        return {}
    # With `oauth`, clients sign in at the front: it registers them, which few providers do.
    server = settings.oauth_url if settings.auth_mode == "oauth" else settings.jwt_issuer
    document: dict[str, Any] = {
        "resource": settings.resource_url,  # "The resource value … MUST be identical" to what the client used
        "authorization_servers": [server],
        "bearer_methods_supported": ["header"],
        "resource_name": settings.server_name,
    }
    supported = list(settings.scopes_supported) or sorted(scopes)
    if supported:
        document["scopes_supported"] = supported
    path = _resource_url(settings).path.rstrip("/")
    return dict.fromkeys((ROOT, ROOT + path), document)


def challenge(settings: Settings, **parameters: str) -> str:
    """Return a `WWW-Authenticate` header (RFC 6750, section 3) that names the metadata (RFC 9728, section 5.1)."""
    url = _resource_url(settings)
    parameters["resource_metadata"] = f"{url.scheme}://{url.netloc}{ROOT}{url.path.rstrip('/')}"
    return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in parameters.items())


def _resource_url(settings: Settings) -> SplitResult:
    from urllib.parse import urlsplit  # noqa: PLC0415 - only a deployment with tokens has a resource

    return urlsplit(settings.resource_url)
