"""The routes of template.yaml in front of Lambda; every other request gets 404.

ANY /mcp and ANY /mcp/<name> have the authorizer, if there is one. Then the metadata routes exist too, and are open.
OPTIONS /mcp is always open, because a browser sends no token with a preflight request. With AuthMode oauth, the routes
of the sign-in front are open too. It has no route of MCP.
"""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from mcp_functions.local.api_gateway.authorizer import Denied
from mcp_functions.local.api_gateway.events import INTERNAL_ERROR, Moment, event, response
from mcp_functions.local.lambdas import MAX_PAYLOAD, Throttled
from mcp_functions.local.lambdas.functions import FRONT_DOOR, SIGN_IN
from mcp_functions.local.loopback import json_response
from mcp_functions.local.open_routes import METADATA_PATHS, SIGN_IN_PATHS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from mcp_functions.local.api_gateway.authorizer import JwtAuthorizer
    from mcp_functions.local.lambdas import Lambdas
    from mcp_functions.local.loopback import HttpRequest, HttpResponse

MAX_BODY = 10 * 1024 * 1024  # bytes of a request's body; "Payload size: 10 MB"
ENDPOINT = re.compile(r"/mcp(?:/([^/]+))?")


class Route(NamedTuple):
    """The route that a request matches."""

    method: str
    path: str
    folder: str
    has_authorizer: bool


class Api:
    """Answers HTTP requests with the functions of one stack."""

    def __init__(
        self,
        lambdas: Lambdas,
        folders: Collection[str],
        *,
        authorizer: JwtAuthorizer | None = None,
        signs_in: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Route to the functions in `folders`.

        Args:
            lambdas: run the functions.
            folders: that have routes.
            authorizer: of AuthMode jwt and oauth.
            signs_in: whether the routes of the sign-in front exist.
            now: the clock, unix seconds.
        """
        self._lambdas, self._folders, self._authorizer, self._now = lambdas, folders, authorizer, now
        self._signs_in = signs_in

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer one request as API Gateway does."""
        route = self._route(request.method, unquote(request.target.partition("?")[0]))
        if route is None or route.folder not in self._folders:
            return json_response(404, {"message": "Not Found"})
        caller, moment = None, Moment.at(self._now())
        try:
            if self._authorizer and route.has_authorizer:
                caller = self._authorizer.authorize(request)
        except Denied as denied:
            return denied.response
        payload = event(request, route.path, moment, caller, method=route.method)
        text = json.dumps(payload, ensure_ascii=False).encode()
        if len(text) > MAX_PAYLOAD:
            return json_response(413, {"message": "Request Entity Too Large"})
        try:
            outcome = self._lambdas.invoke(route.folder, text)
        except Throttled:
            return INTERNAL_ERROR  # reports of the real service show the same answer
        return INTERNAL_ERROR if outcome.failed else response(outcome.payload, moment)

    def _route(self, method: str, path: str) -> Route | None:
        if self._authorizer and path in METADATA_PATHS:
            return Route("ANY", path, FRONT_DOOR, has_authorizer=False)
        if self._signs_in and path in SIGN_IN_PATHS:
            return Route("ANY", path, SIGN_IN, has_authorizer=False)
        if (method, path) == ("OPTIONS", f"/{FRONT_DOOR}"):
            return Route(method, path, FRONT_DOOR, has_authorizer=False)
        endpoint = ENDPOINT.fullmatch(path)
        if endpoint is None or endpoint[1] == SIGN_IN:
            return None
        return Route("ANY", path, endpoint[1] or FRONT_DOOR, has_authorizer=True)
