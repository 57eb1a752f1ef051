"""Protected resource metadata (RFC 9728), which tells a client where to get an access token.

    resource                  the URL of this server: as configured, or with the domain in `requestContext`
    authorization_servers     the server that issues tokens: the configured issuer, or the sign-in front

Neither address comes from the Host header, because a client can send any Host. The gateway alone writes the context.

The sign-in front (`mcp_functions.oauth`) is this stack's own authorization server, in the oauth mode. It registers MCP
clients, which few identity providers do, and signs users in at the provider.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.constants import ENDPOINT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from urllib.parse import SplitResult

    from mcp_functions.settings import Settings

ROOT = "/.well-known/oauth-protected-resource"
DEFAULT_PATH = f"/{ENDPOINT}"


def documents(settings: Settings, scopes: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the metadata without its addresses, by path: the two paths at which clients look for it.

    The result is empty if callers need no token.

    "MCP servers MUST implement OAuth 2.0 Protected Resource Metadata" (basic/authorization). A client tries the path of
    the endpoint first, then the root ("Authorization server discovery").
    """
    if not settings.takes_tokens:
        return {}
    document: dict[str, Any] = {"bearer_methods_supported": ["header"], "resource_name": settings.server_name}
    supported = list(settings.scopes_supported) or sorted(scopes)
    if supported:
        document["scopes_supported"] = supported
    path = _split(settings.resource_url or DEFAULT_PATH).path.rstrip("/")
    return {ROOT: document, ROOT + path: document}


def addresses(settings: Settings, context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the two addresses in the metadata.

    Args:
        settings: the settings of the deployment.
        context: the event's `requestContext`.
    """
    server = front_url(settings, context) if settings.auth_mode == "oauth" else settings.jwt_issuer
    return {"resource": resource_url(settings, context), "authorization_servers": [server]}


def front_url(settings: Settings, context: Mapping[str, Any]) -> str:
    """Return the URL of the sign-in front: as configured, or the origin of this server, whose API it shares.

    Args:
        settings: the settings of the deployment.
        context: the event's `requestContext`.
    """
    if settings.oauth_url:
        return settings.oauth_url
    url = _split(resource_url(settings, context))
    return f"{url.scheme}://{url.netloc}"


def resource_url(settings: Settings, context: Mapping[str, Any]) -> str:
    """Return the URL of this server.

    "The resource value … MUST be identical" to what the client used (RFC 9728, section 3.3).

    Args:
        settings: the settings of the deployment; `resource_url` is set behind a CDN, whose domain differs.
        context: the event's `requestContext`, with the domain that the client called.
    """
    return settings.resource_url or f"https://{context.get('domainName', '')}{DEFAULT_PATH}"


def challenge(settings: Settings, context: Mapping[str, Any], **parameters: str) -> str:
    """Return a `WWW-Authenticate` header (RFC 6750, section 3) that names the metadata (RFC 9728, section 5.1)."""
    url = _split(resource_url(settings, context))
    parameters["resource_metadata"] = f"{url.scheme}://{url.netloc}{ROOT}{url.path.rstrip('/')}"
    return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in parameters.items())


def _split(url: str) -> SplitResult:
    from urllib.parse import urlsplit  # noqa: PLC0415 - only a deployment with tokens has a resource

    return urlsplit(url)
