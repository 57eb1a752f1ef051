"""The HTTP API of template.yaml: it finds the route of a request, checks its token, and calls the route's function.

    route                     function             authorizer                exists
    ANY /mcp                  functions/mcp        yes                       always
    ANY /mcp/<name>           functions/<name>     yes                       always; never for functions/oauth
    OPTIONS /mcp              functions/mcp        no, see below             always
    METADATA_PATHS            functions/mcp        no                        if the API has an authorizer
    METADATA_OF_FUNCTION      functions/mcp        no                        with AuthMode oauth
    SIGN_IN_PATHS             functions/oauth      no                        with AuthMode oauth

Every other request gets 404. Without functions/mcp, the harness's own endpoint takes its place. A browser sends OPTIONS
without a token, to ask which requests a web page may send (CORS preflight).
"""

import json
import re
import time
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote

from mcp_functions.protocol.event_types import Authorizer
from mcp_functions_harness.api_gateway.authorizer import Denied, JwtAuthorizer
from mcp_functions_harness.api_gateway.events import Moment, event
from mcp_functions_harness.api_gateway.responses import INTERNAL_ERROR, response
from mcp_functions_harness.lambdas.functions import FRONT_DOOR, SIGN_IN
from mcp_functions_harness.lambdas.service import MAX_PAYLOAD, Lambdas, Throttled
from mcp_functions_harness.loopback import HttpRequest, HttpResponse, json_response

MAX_BODY = 10 * 1024 * 1024  # bytes of a request's body; AWS's quota says "Payload size: 10 MB"
ENDPOINT = re.compile(r"/mcp(?:/([^/]+))?")  # /mcp, or /mcp/ and the name of a function
# These paths need no authorization, because clients have no token yet when they ask.
METADATA = "/.well-known/oauth-protected-resource"  # RFC 9728; with the endpoint's path, or without
METADATA_PATHS = frozenset({METADATA, f"{METADATA}/mcp"})
METADATA_OF_FUNCTION = f"{METADATA}/mcp/{{folder}}"  # "{folder}" is one segment of a path
SIGN_IN_PATHS = frozenset({
    "/authorize", "/callback", "/token", "/register", "/revoke",
    "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration", "/.well-known/jwks.json",
})  # fmt: skip


class Route(NamedTuple):
    """The route that a request matches."""

    method: str
    path: str
    folder: str
    has_authorizer: bool


@dataclass(frozen=True)
class Api:
    """Answers HTTP requests with the functions of one stack."""

    lambdas: Lambdas
    authorizer: JwtAuthorizer | None = field(default=None, kw_only=True)  # None: all may pass
    has_sign_in: bool = field(default=False, kw_only=True)  # whether the sign-in front has routes

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer one request as API Gateway does."""
        path = unquote(request.target.partition("?")[0])
        route = self._find_route(request.method, path)
        if route is None or route.folder not in self.lambdas.folders:
            return json_response(404, {"message": "Not Found"})
        authorizer = None  # what it has read in the caller's token
        if self.authorizer and route.has_authorizer:
            try:
                authorizer = self.authorizer.authorize(request)
            except Denied as denied:
                return denied.response
        return self._invoke(request, route, authorizer)

    def _invoke(self, request: HttpRequest, route: Route, authorizer: Authorizer | None) -> HttpResponse:
        moment = Moment.at(time.time())
        event_json = json.dumps(event(request, route.path, moment, authorizer, method=route.method), ensure_ascii=False)
        payload = event_json.encode()
        if len(payload) > MAX_PAYLOAD:
            return json_response(413, {"message": "Request Entity Too Large"})
        try:
            outcome = self.lambdas.invoke(route.folder, payload)
        except Throttled:
            return INTERNAL_ERROR  # the real service answers so too
        if outcome.error:
            return INTERNAL_ERROR
        return response(outcome.payload, moment)

    def _find_route(self, method: str, path: str) -> Route | None:
        if self.authorizer and path in METADATA_PATHS:
            return Route("ANY", path, FRONT_DOOR, has_authorizer=False)
        if self.has_sign_in and re.fullmatch(f"{METADATA}/mcp/[^/]+", path):
            return Route("ANY", METADATA_OF_FUNCTION, FRONT_DOOR, has_authorizer=False)
        if self.has_sign_in and path in SIGN_IN_PATHS:
            return Route("ANY", path, SIGN_IN, has_authorizer=False)
        if method == "OPTIONS" and path == f"/{FRONT_DOOR}":
            return Route(method, path, FRONT_DOOR, has_authorizer=False)
        endpoint = ENDPOINT.fullmatch(path)
        if endpoint is None or endpoint[1] == SIGN_IN:
            return None
        return Route("ANY", path, endpoint[1] or FRONT_DOOR, has_authorizer=True)
