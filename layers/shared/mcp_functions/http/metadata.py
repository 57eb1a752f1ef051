"""What clients read before they have a token: where to get one (RFC 9728), and the challenge that points there.

Everything is written from the configuration: a Host header is the client's word, and whoever could choose it would
choose where clients get their tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from urllib.parse import SplitResult

    from mcp_functions.settings import Settings

ROOT = "/.well-known/oauth-protected-resource"


def documents(settings: Settings, scopes: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Write the metadata of this server for both paths at which clients look for it.

    "MCP servers MUST implement OAuth 2.0 Protected Resource Metadata"; clients try the path of the endpoint first, then
    the root (basic/authorization, "Authorization server discovery").

    Args:
        settings: of the deployment.
        scopes: that its handlers need, unless the operator names others to ask for.

    Returns:
        Path to document; none without tokens.

    """
    if settings.auth_mode != "jwt":
        return {}
    document: dict[str, Any] = {
        "resource": settings.resource_url,  # "The resource value … MUST be identical" to what the client used
        "authorization_servers": [settings.jwt_issuer],
        "bearer_methods_supported": ["header"],
        "resource_name": settings.server_name,
    }
    if asked := list(settings.scopes_supported) or sorted(scopes):
        document["scopes_supported"] = asked
    return dict.fromkeys((ROOT, ROOT + _path(settings)), document)


def challenge(settings: Settings, **parameters: str) -> str:
    """Write a `WWW-Authenticate` header (RFC 6750, section 3), which names the metadata (RFC 9728, section 5.1)."""
    url = _parsed(settings)
    said = {**parameters, "resource_metadata": f"{url.scheme}://{url.netloc}{ROOT}{_path(settings)}"}
    return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in said.items())


def _path(settings: Settings) -> str:
    return _parsed(settings).path.rstrip("/")


def _parsed(settings: Settings) -> SplitResult:
    from urllib.parse import urlsplit  # noqa: PLC0415 - only tokens have a resource

    return urlsplit(settings.resource_url)
