"""Checks the access to routes: a closed route refuses a caller without credentials, an open route answers.

    closed   the endpoint and each function, unless the mode is none
    open     OPTIONS /mcp, in every mode; and with jwt and oauth the documents that say where to sign in:
             resource document (RFC 9728)   names the issuer of access tokens
             front document (RFC 8414)      in mode oauth: names the endpoints of functions/oauth, the sign-in front

With the mode oauth, the sign-in front is the issuer, and belongs to the same server. A browser asks by an OPTIONS
request (a preflight) whether a page may call. It sends no credentials with this request.
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from mcp_functions.oauth.discovery import AUTHORIZATION_SERVER, OPENID
from mcp_functions.settings import AuthMode
from mcp_functions_harness.client.http import Request
from mcp_functions_harness.loopback import json_object
from mcp_functions_harness.verification.report import Failed, Skipped, comma_list
from mcp_functions_harness.verification.server import STATUSES, Server

CALLERS: dict[AuthMode, str] = {
    "iam": "callers sign their requests",
    "jwt": "callers have an access token",
    "oauth": "callers sign in at the front",
    "none": "everybody may call",
}
REFUSALS = {401, 403}  # HTTP statuses for a caller without credentials
NO_RESPONSE = 0  # `Response.status` where the server did not answer
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "revocation_endpoint")


def check_endpoint(server: Server) -> str:
    """Check that the endpoint answers the user's credentials."""
    response = server.exchange("server/discover", {})
    if response.status in REFUSALS:
        raise Failed(f"your credentials are refused: {response}")
    if response.result is None:
        raise Failed(str(response))
    return f"{server.url} answers; mode {server.mode}, {CALLERS[server.mode]}"


def check_closed(server: Server, expected: str | None, folders: Sequence[str]) -> str:
    """Check that the mode is the expected one, and that every route refuses a caller without credentials."""
    if expected and expected != server.mode:
        raise Failed(f"{server.url} is in mode {server.mode}, not {expected}: {CALLERS[server.mode]}")
    if server.mode == "none":
        raise Skipped("mode none, everybody may call; --auth iam, jwt or oauth says that it should not be so")
    open_routes = []
    for folder in ("", *folders):
        status = server.discover_anonymously(folder).status
        if status != STATUSES[server.mode]:
            path = urlsplit(server.url_of(folder)).path
            open_routes.append(f"{path} answers HTTP {status} to a caller without credentials")
    if open_routes:
        raise Failed(comma_list(open_routes))
    return f"/mcp and {len(folders)} functions refuse a caller without credentials"


def check_open(server: Server, resource: str, origins: Sequence[str]) -> str:
    """Check that preflights of origins, the documents about `resource` and the sign-in need no credentials."""
    if server.mode == "none" and not origins:
        raise Skipped("mode none has no closed ones, and no origin is allowed; --origin names one")
    options = f"OPTIONS {urlsplit(server.url).path}"
    response = server.send(server.url, Request(b"", method="OPTIONS"))
    if response.status in REFUSALS:
        raise Failed(f"{options} answers HTTP {response.status}, so no page can send a preflight")
    checked = [options]
    if server.mode in {"jwt", "oauth"}:
        issuers = [_check_resource_document(server, url, resource) for url in server.metadata_urls]
        checked += [urlsplit(url).path for url in server.metadata_urls]
        if server.mode == "oauth":
            _check_front(server, front=issuers[0])
            checked += [AUTHORIZATION_SERVER, OPENID]
    for origin in origins:
        headers = (("Origin", origin), ("Access-Control-Request-Method", "POST"))
        preflight = server.send(server.url, Request(b"", headers, method="OPTIONS"))
        if preflight.headers.get("access-control-allow-origin") != origin:
            answer = f"is answered by HTTP {preflight.status}, without its permission"
            raise Failed(f"a preflight of {origin} {answer}")
        checked.append(f"preflights of {origin}")
    return ", ".join(checked)


def _check_resource_document(server: Server, url: str, resource: str) -> str:
    """Check that the resource document names the URL that clients use; return its issuer of tokens."""
    path = urlsplit(url).path
    document = _read(server, url)
    if document.get("resource") != resource:
        raise Failed(f"{path} names the resource {document.get('resource')}, and clients use {resource}")
    if not document.get("authorization_servers"):
        raise Failed(f"{path} names no issuer of tokens")
    return str(document["authorization_servers"][0])


def _check_front(server: Server, front: str) -> None:
    """Check that the front's documents and endpoints need no credentials; `front` is its URL."""
    for path in (AUTHORIZATION_SERVER, OPENID):
        document = _read(server, front + path)
        if document.get("issuer") != front:
            raise Failed(f"{path} names the issuer {document.get('issuer')}, and clients know it as {front}")
        for name in ENDPOINTS:
            if name not in document:
                raise Failed(f"{path} has no {name}")
            url = str(document[name])
            response = server.get_document(url)
            if response.status in {NO_RESPONSE, HTTPStatus.NOT_FOUND, *REFUSALS}:
                endpoint = urlsplit(url).path
                raise Failed(f"{endpoint} of the sign-in answers {response} to a caller without credentials")


def _read(server: Server, url: str) -> dict[str, Any]:
    """Get a document without credentials."""
    response = server.get_document(url)
    if response.status != HTTPStatus.OK:
        raise Failed(f"{urlsplit(url).path} answers HTTP {response.status} to a caller without credentials")
    return json_object(response.body)
