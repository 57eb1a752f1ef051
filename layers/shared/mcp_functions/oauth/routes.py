"""The routes of the authorization server: the path and the method of a request decide which endpoint answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from mcp_functions import observability
from mcp_functions.oauth import authorization, discovery, registration, responses, token
from mcp_functions.oauth.request import read as read_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.http.events import HttpRequest
    from mcp_functions.oauth.request import OAuthRequest
    from mcp_functions.oauth.services import Services
    from mcp_functions.protocol.event_types import Response

    Endpoint: TypeAlias = Callable[[OAuthRequest, Services], Response]

REGISTER = "/register"
# The endpoints that take parameters in a query or a form, by path and HTTP method.
ENDPOINTS: dict[str, dict[str, Endpoint]] = {
    "/authorize": {"GET": authorization.begin, "POST": authorization.decide},
    "/callback": {"GET": authorization.finish},
    "/token": {"POST": token.issue},
    "/revoke": {"POST": token.revoke},
}


def answer(http: HttpRequest, services: Services) -> Response:
    """Answer one request."""
    services = services.for_domain(http.request_context)
    metadata = discovery.documents(services.settings).get(http.path)
    path = _path_below_url(http.path, services.settings.url)
    if metadata is not None:
        name, methods = "metadata", ["GET", "HEAD"]
    elif path == REGISTER and services.settings.registration:
        name, methods = "register", ["POST"]
    else:
        name, methods = path.removeprefix("/"), list(ENDPOINTS.get(path, {}))
    if http.method not in methods:
        return _answer_another_method(http, name, methods)
    observability.current().method = name  # for the log
    if metadata is not None:
        response = responses.make_json(200, metadata, responses.METADATA_HEADERS)
        return {**response, "body": ""} if http.method == "HEAD" else response
    if path == REGISTER:  # its body is JSON, and no form
        return registration.register(http, services)
    endpoint = ENDPOINTS[path][http.method]
    return endpoint(read_request(http), services)


def _answer_another_method(http: HttpRequest, name: str, methods: list[str]) -> Response:
    """Answer a request with a method that its path does not have; a path without methods does not exist."""
    notes = observability.current()
    if not methods:
        notes.reason = "not_found"
        return responses.make_empty(404)
    notes.method = name
    # A preflight (CORS): a browser asks whether a page of another site may call the path. Only our pages are refused.
    if http.method == "OPTIONS" and not responses.is_page_path(http.path):
        return responses.make_empty(204, responses.PREFLIGHT_HEADERS)
    notes.reason = "http_method"
    return responses.make_empty(405, {"allow": ", ".join(methods)})


def _path_below_url(path: str, url: str) -> str:
    """Return the path of a request below the URL of this server.

    The URL may have a path of its own, for example https://example.com/sign-in. A proxy may have removed it from the
    path of the request, so both "/sign-in/token" and "/token" are the endpoint "/token".
    """
    base = urlsplit(url).path
    if path.startswith(f"{base}/"):
        return path.removeprefix(base)
    return path
