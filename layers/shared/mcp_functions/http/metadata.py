"""Protected resource metadata (RFC 9728), which tells a client where to get an access token.

    GET /.well-known/oauth-protected-resource
    {"resource": "https://…/mcp", "authorization_servers": ["https://…"], "scopes_supported": […], …}

The authorization server comes from the configuration. In the oauth mode it is this stack's own sign-in front
(`mcp_functions.oauth`): a function that signs people in at an OpenID Connect provider. The resource comes from the
configuration, or from `requestContext`, which the gateway alone writes. Neither address comes from the Host header,
because a client can send any Host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.constants import ENDPOINT_FOLDER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from urllib.parse import SplitResult

    from mcp_functions.settings import Settings

ROOT = "/.well-known/oauth-protected-resource"  # the path of the metadata; the resource's own path may follow it
DEFAULT_PATH = f"/{ENDPOINT_FOLDER}"  # the path of the resource


def documents(settings: Settings, scopes: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the metadata by the paths at which clients look for it; empty if callers need no token.

    `addresses` adds the two addresses later, because the domain is known only when a request arrives.

    "MCP servers MUST implement OAuth 2.0 Protected Resource Metadata" (basic/authorization). A client tries the path of
    the endpoint first, then the root ("Authorization server discovery").

    Args:
        settings: the settings of the deployment.
        scopes: the scopes that the handlers need; they are published if the settings name none.
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
    """Return the addresses in the metadata: this server's, and that of its authorization server.

    In the oauth mode the authorization server is the sign-in front, because few providers register clients.

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
    """Return a `WWW-Authenticate` header (RFC 6750, section 3) that names the metadata (RFC 9728, section 5.1).

    Args:
        settings: the settings of the deployment.
        context: the event's `requestContext`.
        parameters: the parameters of the header, such as `error` and `scope`.
    """
    url = _split(resource_url(settings, context))
    parameters["resource_metadata"] = f"{url.scheme}://{url.netloc}{ROOT}{url.path.rstrip('/')}"
    written = [f'{name}="{value}"' for name, value in parameters.items()]
    return "Bearer " + ", ".join(written)


def _split(url: str) -> SplitResult:
    from urllib.parse import urlsplit  # noqa: PLC0415 - only a deployment with tokens has a resource

    return urlsplit(url)
