"""Checks the access to routes: a closed route refuses a caller without credentials, an open route answers.

    closed   the endpoint and each function, unless the mode is none
    open     OPTIONS /mcp, in every mode; and with jwt and oauth the documents that say where to sign in

A browser asks by an OPTIONS request (a preflight) whether a page may call. It sends no credentials with this request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mcp_functions.attack.client import Request
from mcp_functions.local.verification import documents
from mcp_functions.local.verification.report import Failed, Skipped, comma_list
from mcp_functions.local.verification.server import STATUSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_functions.local.verification.server import Server
    from mcp_functions.settings import AuthMode

CALLERS: dict[AuthMode, str] = {
    "iam": "callers sign their requests",
    "jwt": "callers have an access token",
    "oauth": "callers sign in at the front",
    "none": "everybody may call",
}


def check_endpoint(server: Server, mode: AuthMode) -> str:
    """Check that the endpoint answers the user's credentials."""
    response = server.call("server/discover", {})
    if response.status in documents.REFUSALS:
        raise Failed(message=f"your credentials are refused: {response}")
    if response.result is None:
        raise Failed(message=str(response))
    return f"{server.url} answers; mode {mode}, {CALLERS[mode]}"


def check_closed(server: Server, mode: AuthMode, expected: str | None, folders: Sequence[str]) -> str:
    """Check that the endpoint and each function refuse a caller without credentials.

    Args:
        server: the endpoint.
        mode: the mode that the endpoint shows.
        expected: the mode that the user expects; None: any.
        folders: the folders of the functions.
    """
    if expected and expected != mode:
        raise Failed(message=f"{server.url} is in mode {mode}, not {expected}: {CALLERS[mode]}")
    if mode == "none":
        raise Skipped(message="mode none, everybody may call; --auth iam, jwt or oauth says that it should not be so")
    answers = [_opened(server, mode, folder) for folder in ("", *folders)]
    open_routes = [answer for answer in answers if answer]
    if open_routes:
        raise Failed(message=comma_list(open_routes))
    return f"/mcp and {len(folders)} functions refuse a caller without credentials"


def _opened(server: Server, mode: AuthMode, folder: str) -> str:
    """Return how a route answers a caller without credentials; "" if it refuses as the mode does."""
    response = server.discover_anonymously(folder)
    if response.status == STATUSES[mode]:
        return ""
    path = urlsplit(server.url_of(folder)).path
    return f"{path} answers HTTP {response.status} to a caller without credentials"


def check_open(server: Server, mode: AuthMode, resource: str, origins: Sequence[str]) -> str:
    """Check that preflights, the metadata and the sign-in need no credentials.

    Args:
        server: the endpoint.
        mode: the mode of the API; with jwt the metadata names the issuer, with oauth the sign-in front.
        resource: the URL that the metadata must name.
        origins: the origins whose pages may call.
    """
    if mode == "none" and not origins:
        raise Skipped(message="mode none has no closed ones, and no origin is allowed; --origin names one")
    options = f"OPTIONS {urlsplit(server.url).path}"
    response = server.send(server.url, Request(b"", method="OPTIONS"))
    if response.status in documents.REFUSALS:
        raise Failed(message=f"{options} answers HTTP {response.status}, so no page can send a preflight")
    paths = _open_documents(server, mode, resource)
    for origin in origins:
        _check_preflight(server, origin)
    return ", ".join([options, *paths, *(f"preflights of {origin}" for origin in origins)])


def _open_documents(server: Server, mode: AuthMode, resource: str) -> list[str]:
    """Check the documents that say where to sign in; return their paths."""
    if mode not in {"jwt", "oauth"}:
        return []
    checked_documents = [documents.check_resource(server, url, resource) for url in server.metadata_urls]
    paths = [urlsplit(url).path for url in server.metadata_urls]
    if mode == "oauth":
        paths += documents.check_front(server, checked_documents[0])
    return paths


def _check_preflight(server: Server, origin: str) -> None:
    headers = (("Origin", origin), ("Access-Control-Request-Method", "POST"))
    response = server.send(server.url, Request(b"", headers, method="OPTIONS"))
    if response.headers.get("access-control-allow-origin") != origin:
        raise Failed(message=f"a preflight of {origin} is answered by HTTP {response.status}, without its permission")
