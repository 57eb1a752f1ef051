"""Access to routes: closed ones refuse a caller without credentials, open ones answer."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mcp_functions.attack.client import Request
from mcp_functions.local.verification.report import Failed, Skipped, listed
from mcp_functions.local.verification.server import MODES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_functions.attack.client import Response
    from mcp_functions.local.verification.server import Mode, Server

WHO = {"iam": "callers sign their requests", "jwt": "callers have an access token", "none": "everybody may call"}


def check_endpoint(server: Server, mode: Mode) -> str:
    """Check that the endpoint answers the user's credentials."""
    response = server.ask("server/discover", {})
    if response.status in {401, 403}:
        text = f"your credentials are refused: {response}"
        raise Failed(text)
    if response.result is None:
        raise Failed(str(response))
    return f"{server.url} answers; mode {mode}, {WHO[mode]}"


def check_closed(server: Server, mode: Mode, expected: str | None, folders: Sequence[str]) -> str:
    """Check that the endpoint and each function refuse a caller without credentials.

    Args:
        server: the endpoint.
        mode: as the endpoint shows it.
        expected: the mode that the user names.
        folders: of the functions.
    """
    if expected and expected != mode:
        text = f"{server.url} is in mode {mode}, not {expected}: {WHO[mode]}"
        raise Failed(text)
    if mode == "none":
        nothing = "mode none, everybody may call; --auth iam or --auth jwt says that it should not be so"
        raise Skipped(nothing)
    problems = [_opened(server, mode, folder) for folder in ("", *folders)]
    found = [problem for problem in problems if problem]
    if found:
        raise Failed(listed(found))
    return f"/mcp and {len(folders)} functions refuse a caller without credentials"


def _opened(server: Server, mode: Mode, folder: str) -> str:
    url = server.at(folder)
    response = server.send(url, server.write("server/discover", {}))
    if MODES.get(response.status) == mode:
        return ""
    return f"{urlsplit(url).path} answers HTTP {response.status} to a caller without credentials"


def check_open(server: Server, mode: Mode, resource: str, origins: Sequence[str]) -> str:
    """Check that preflights and the metadata need no credentials.

    Args:
        server: the endpoint.
        mode: with jwt, the metadata names the issuer.
        resource: the URL that the metadata must name.
        origins: whose pages may call.
    """
    documents = server.metadata if mode == "jwt" else []
    for url in documents:
        _check_metadata(url, server.send(url, Request(b"", method="GET")), resource)
    for origin in origins:
        asked = (("Origin", origin), ("Access-Control-Request-Method", "POST"))
        response = server.send(server.url, Request(b"", asked, method="OPTIONS"))
        if response.headers.get("access-control-allow-origin") != origin:
            text = f"a preflight of {origin} is answered by HTTP {response.status}, without its permission"
            raise Failed(text)
    if not documents and not origins:
        nothing = f"mode {mode} has none, and no origin is allowed; --origin names one"
        raise Skipped(nothing)
    return listed([urlsplit(url).path for url in documents] + [f"preflights of {origin}" for origin in origins])


def _check_metadata(url: str, response: Response, resource: str) -> None:
    path, document = urlsplit(url).path, _object(response.body)
    if response.status != HTTPStatus.OK:
        text = f"{path} answers HTTP {response.status} to a caller without credentials"
        raise Failed(text)
    if document.get("resource") != resource:
        text = f"{path} names the resource {document.get('resource')}, and clients use {resource}"
        raise Failed(text)
    if not document.get("authorization_servers"):
        text = f"{path} names no issuer of tokens"
        raise Failed(text)


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
