"""Checks the documents by which clients find out where people sign in.

    resource document (RFC 9728)   names the issuer of access tokens
    front document (RFC 8414)      in mode oauth: names the endpoints of the sign-in front, functions/oauth

With the mode oauth, the sign-in front is the issuer, and belongs to the same server.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mcp_functions.local.loopback import json_object
from mcp_functions.local.verification.report import Failed
from mcp_functions.oauth.discovery import AUTHORIZATION_SERVER, OPENID

if TYPE_CHECKING:
    from mcp_functions.local.verification.server import Server

Document = dict[str, Any]
REFUSALS = {401, 403}  # HTTP statuses for a caller without credentials
NO_RESPONSE = 0  # `Response.status` where the server did not answer
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "revocation_endpoint")


def check_resource(server: Server, url: str, resource: str) -> Document:
    """Check the resource document, and return it.

    Args:
        server: the endpoint.
        url: the URL of the document.
        resource: the URL of the server, which the document must name.

    Raises:
        Failed: the document needs credentials, or clients cannot use it.
    """
    path = urlsplit(url).path
    document = _read(server, url)
    if document.get("resource") != resource:
        raise Failed(message=f"{path} names the resource {document.get('resource')}, and clients use {resource}")
    if not document.get("authorization_servers"):
        raise Failed(message=f"{path} names no issuer of tokens")
    return document


def check_front(server: Server, document: Document) -> list[str]:
    """Check that the front's documents and endpoints need no credentials; return the paths of the documents.

    Args:
        server: the endpoint.
        document: the resource document, which names the front.

    Raises:
        Failed: a document or an endpoint needs credentials, or clients cannot use it.
    """
    front = str(document["authorization_servers"][0])
    for path in (AUTHORIZATION_SERVER, OPENID):
        metadata = _read(server, front + path)
        if metadata.get("issuer") != front:
            raise Failed(message=f"{path} names the issuer {metadata.get('issuer')}, and clients know it as {front}")
        _check_endpoints(server, path, metadata)
    return [AUTHORIZATION_SERVER, OPENID]


def _check_endpoints(server: Server, path: str, metadata: Document) -> None:
    for name in ENDPOINTS:
        if name not in metadata:
            raise Failed(message=f"{path} has no {name}")
        url = str(metadata[name])
        response = server.get(url)
        if response.status in {NO_RESPONSE, HTTPStatus.NOT_FOUND, *REFUSALS}:
            endpoint = urlsplit(url).path
            raise Failed(message=f"{endpoint} of the sign-in answers {response} to a caller without credentials")


def _read(server: Server, url: str) -> Document:
    """Get a document without credentials."""
    response = server.get(url)
    if response.status != HTTPStatus.OK:
        raise Failed(message=f"{urlsplit(url).path} answers HTTP {response.status} to a caller without credentials")
    return json_object(response.body)
