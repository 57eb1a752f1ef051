"""The routes of the sign-in front, an OAuth authorization server for MCP clients.

It registers the clients, which few OpenID Connect providers do. It asks the user for consent, and sends the user to the
provider of the deployment to sign in.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from mcp_functions import observability
from mcp_functions.oauth import authorization, callback, discovery, registration, responses, token
from mcp_functions.oauth.request import read as read_request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.http.events import HttpRequest, Response
    from mcp_functions.oauth.request import OAuthRequest
    from mcp_functions.oauth.services import Services
    from mcp_functions.oauth.settings import FrontSettings

    Event: TypeAlias = Mapping[str, Any]  # of API Gateway
    Endpoint: TypeAlias = Callable[[Event, HttpRequest, Services], Response]


def answer(event: Event, http: HttpRequest, services: Services) -> Response:
    """Answer one request; `http` has what every function reads of the event, and the event has query and cookies.

    Raises:
        OAuthError: the request is refused.
        McpError: KMS or the provider does not answer.
    """
    services = services.for_domain(http.request_context)
    notes = observability.current()  # for the log
    name, endpoints = _find_route(http.path, services.settings)
    if not endpoints:
        notes.reason = "not_found"
        return responses.make_empty(404)
    notes.method = name
    if http.method in endpoints:
        return endpoints[http.method](event, http, services)
    # A preflight (CORS): a browser asks whether a page of another site may call the path. Only our pages are refused.
    if http.method == "OPTIONS" and not responses.is_page_path(http.path):
        return responses.make_empty(204, responses.PREFLIGHT_HEADERS)
    notes.reason = "http_method"
    return responses.make_empty(405, {"allow": ", ".join(endpoints)})


def _find_route(path: str, settings: FrontSettings) -> tuple[str, Mapping[str, Endpoint]]:
    """Return the name of the route at a path, for the log, and its endpoints by HTTP method; none if it is unknown."""
    documents = discovery.documents(settings)
    if path in documents:
        return "metadata", {"GET": partial(_show_document, documents[path])}
    route = _path_in_front(path, settings)
    if route == "/register" and not settings.registration:
        return "", {}
    return route.removeprefix("/"), ROUTES.get(route, {})


def _path_in_front(path: str, settings: FrontSettings) -> str:
    """Return the path of a request within the front.

    The URL of the front may have a path of its own, for example https://example.com/sign-in. A proxy may have removed
    it from the path of the request, so both "/sign-in/token" and "/token" are the endpoint "/token".
    """
    base = urlsplit(settings.url).path
    if path.startswith(f"{base}/"):
        return path.removeprefix(base)
    return path


def _show_document(document: Mapping[str, Any], *_request: object) -> Response:
    return responses.make_public_json(document)


def _register(_event: Event, http: HttpRequest, services: Services) -> Response:
    return registration.register(http, services)  # the body is JSON, and no form


def _with_parameters(function: Callable[[OAuthRequest, Services], Response]) -> Endpoint:
    """Make an endpoint of a function that takes the parameters of a query or a form."""

    def endpoint(event: Event, http: HttpRequest, services: Services) -> Response:
        return function(read_request(event, http), services)

    return endpoint


ROUTES: dict[str, dict[str, Endpoint]] = {
    "/authorize": {"GET": _with_parameters(authorization.begin), "POST": _with_parameters(authorization.decide)},
    "/callback": {"GET": _with_parameters(callback.receive)},
    "/token": {"POST": _with_parameters(token.issue)},
    "/revoke": {"POST": _with_parameters(token.revoke)},
    "/register": {"POST": _register},
}
