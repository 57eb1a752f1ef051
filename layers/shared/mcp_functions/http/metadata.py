"""Protected resource metadata (RFC 9728), which tells a client where to get an access token.

    client                                          server
    POST /mcp, without a token                      401, WWW-Authenticate: Bearer resource_metadata="…"
    GET /.well-known/oauth-protected-resource/mcp   {"resource": "https://…/mcp", "authorization_servers": ["https://…"],
                                                     "scopes_supported": ["items.write"], …}

Then the client gets a token from the authorization server.

The addresses come from the settings, or from the event's `requestContext`, which API Gateway alone writes. They never
come from the Host header, because a client can send any Host.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.constants import ENDPOINT_FOLDER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_functions.http.events import HttpRequest
    from mcp_functions.protocol.event_types import RequestContext
    from mcp_functions.settings import Settings

# the path of the document; the path of the MCP server may follow
WELL_KNOWN = "/.well-known/oauth-protected-resource"
FOLDER = r"[a-z0-9_-]{1,64}"  # of a function, whose own endpoint is below that of the server
DEFAULT_PATH = f"/{ENDPOINT_FOLDER}"  # the path of the MCP server, if the settings name no URL


def document(http: HttpRequest, settings: Settings, scopes: Sequence[str]) -> dict[str, Any] | None:
    """Return the document at the path of a request; None if the path has none.

    "MCP servers MUST implement OAuth 2.0 Protected Resource Metadata" (basic/authorization). A client tries the path
    with the server's own path first, then the one without ("Authorization server discovery").

    Args:
        http: the request.
        settings: the settings of the deployment.
        scopes: the scopes that the handlers need; they are published if the settings name none.
    """
    resource = resource_url(settings, http.request_context)
    _origin, server_path = _split(resource)
    # "", or "/add" for the function at "/mcp/add"
    place = http.path.removeprefix(WELL_KNOWN + server_path)
    # Only the front gives a token for the server to a client that asks for one of its functions.
    is_function = settings.auth_mode == "oauth" and re.fullmatch(f"/{FOLDER}", place) is not None
    if not settings.takes_tokens or not (http.path == WELL_KNOWN or place == "" or is_function):
        return None
    # RFC 9728, 3.3: the resource "MUST be identical" to the URL from which the client made the path
    if is_function:
        resource += place
    issuer = front_url(settings, http.request_context) if settings.auth_mode == "oauth" else settings.jwt_issuer
    members: dict[str, Any] = {
        "resource": resource,
        "authorization_servers": [issuer],
        "bearer_methods_supported": ["header"],
        "resource_name": settings.server_name,
    }
    supported = list(settings.scopes_supported) or sorted(scopes)
    if supported:
        members["scopes_supported"] = supported
    return members


def front_url(settings: Settings, request_context: RequestContext) -> str:
    """Return the URL of the sign-in front (`mcp_functions.oauth`), the authorization server of the oauth mode.

    Without a setting it is the origin of the MCP server, because both are behind the same API.
    """
    if settings.oauth_url:
        return settings.oauth_url.rstrip("/")
    origin, _path = _split(resource_url(settings, request_context))
    return origin


def resource_url(settings: Settings, request_context: RequestContext) -> str:
    """Return the URL of the MCP server.

    A client compares it with the URL that it called: they "MUST be identical" (RFC 9728, section 3.3). Behind a CDN,
    whose domain differs from the API's, an operator has to set it.
    """
    return settings.resource_url or f"https://{request_context.get('domainName', '')}{DEFAULT_PATH}"


def challenge(settings: Settings, request_context: RequestContext, **parameters: str) -> str:
    """Return a `WWW-Authenticate` header (RFC 6750, section 3) with the URL of the document (RFC 9728, section 5.1).

    Args:
        settings: the settings of the deployment.
        request_context: the event's `requestContext`.
        parameters: further parameters of the header, such as `error` and `scope`.
    """
    origin, path = _split(resource_url(settings, request_context))
    named = {**parameters, "resource_metadata": f"{origin}{WELL_KNOWN}{path}"}
    return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in named.items())


def _split(url: str) -> tuple[str, str]:
    """Split "https://example.com/mcp" into its origin, "https://example.com", and its path, "/mcp"."""
    # only a deployment with tokens needs this
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
