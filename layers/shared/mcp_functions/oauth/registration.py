"""`/register`: dynamic client registration (RFC 7591).

    request    {"redirect_uris": ["https://host.example/callback"], "client_name": "Desk"}
    response   {"client_id": "ks1.…", "redirect_uris": ["https://host.example/callback"], "client_name": "Desk", …}

`client_metadata` checks the metadata. This server stores no client: `clients` encrypts the metadata into the id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions.http import events
from mcp_functions.oauth import responses
from mcp_functions.oauth.client_metadata import GRANTS
from mcp_functions.oauth.errors import OAuthError
from mcp_functions.oauth.sealed_values import CLIENT
from mcp_functions.protocol import json_reader
from mcp_functions.protocol.errors import ParseError

if TYPE_CHECKING:
    from mcp_functions.http.events import HttpRequest
    from mcp_functions.oauth.client_metadata import Client
    from mcp_functions.oauth.json_types import ClientInformation
    from mcp_functions.oauth.services import Services
    from mcp_functions.protocol.event_types import Response

MAX_BODY_BYTES = 16 * 1024


def register(http: HttpRequest, services: Services) -> Response:
    """Answer `POST /register`."""
    try:
        metadata = json_reader.loads(events.read_body(http, MAX_BODY_BYTES))
    except ParseError:  # an error of JSON-RPC; a client of OAuth expects one of RFC 7591
        raise OAuthError(code="invalid_client_metadata", description="the body is not JSON") from None
    client, secret = services.clients.create(metadata)
    return responses.make_json(201, describe(client, secret, int(services.now())))


def describe(client: Client, secret: str, now: int) -> ClientInformation:
    """Return the client information response (RFC 7591, section 3.2.1). Only this response contains the secret."""
    described: ClientInformation = {
        "client_id": client.id,
        "client_id_issued_at": now,
        "redirect_uris": list(client.redirect_uris),
        "grant_types": list(GRANTS),  # whatever the client has asked for
        "response_types": ["code"],
        "token_endpoint_auth_method": client.method,
    }
    if client.name:
        described["client_name"] = client.name
    if secret:
        described["client_secret"] = secret
        described["client_secret_expires_at"] = now + CLIENT.lifetime_seconds  # as the id
    if client.keys is not None:
        described["jwks"] = client.keys
    if client.keys_url:
        described["jwks_uri"] = client.keys_url
    return described
