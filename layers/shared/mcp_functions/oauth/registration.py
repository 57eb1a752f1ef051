"""`/register`: dynamic client registration (RFC 7591). A client's metadata comes in, its id and secret go out.

The id holds the metadata, sealed. No client is stored, so none can be changed later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.http import events
from mcp_functions.oauth import answers, errors
from mcp_functions.oauth.client_metadata import GRANTS
from mcp_functions.oauth.errors import OAuthError
from mcp_functions.oauth.sealed_values import CLIENT
from mcp_functions.protocol import json_reader
from mcp_functions.protocol.errors import ParseError

if TYPE_CHECKING:
    from mcp_functions.http.events import HttpRequest, Response
    from mcp_functions.oauth.client_metadata import Client
    from mcp_functions.oauth.front import Parts

MAX_BODY = 16 * 1024  # bytes
CREATED = 201


def register(http: HttpRequest, parts: Parts) -> Response:
    """Answer `POST /register`.

    Raises:
        OAuthError: the metadata is not that of a client that can sign in here.
        McpError: KMS does not answer, or the body is too large.
    """
    try:
        metadata = json_reader.loads(events.read_body(http, MAX_BODY))
    except ParseError:
        raise OAuthError(errors.INVALID_CLIENT_METADATA, "the body is not JSON") from None  # the cause is JSON-RPC's
    client, secret = parts.clients.register(metadata)
    return answers.json(CREATED, describe(client, secret, int(parts.now())))


def describe(client: Client, secret: str, now: int) -> dict[str, Any]:
    """Return the client information response (RFC 7591, section 3.2.1).

    Args:
        client: the client.
        secret: its secret; "" if it has none.
        now: the current time in unix seconds.
    """
    described: dict[str, Any] = {
        "client_id": client.id,
        "client_id_issued_at": now,
        "redirect_uris": list(client.redirect_uris),
        "grant_types": list(GRANTS),
        "response_types": ["code"],
        "token_endpoint_auth_method": client.method,
    }
    if client.name:
        described["client_name"] = client.name
    if secret:
        described["client_secret"] = secret
        described["client_secret_expires_at"] = now + CLIENT.seconds
    if client.keys is not None:
        described["jwks"] = client.keys
    if client.keys_url:
        described["jwks_uri"] = client.keys_url
    return described
