"""API Gateway: the routes of template.yaml in front of Lambda, and 404 for everything else.

ANY /mcp and ANY /mcp/<name> carry the authorizer, if there is one; then the metadata that leads to a token is open to
everybody, and so is OPTIONS /mcp, for a browser's preflight brings none.
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
from mcp_functions.local.lambdas.functions import FRONT_DOOR
from mcp_functions.local.loopback import json_response

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from mcp_functions.local.api_gateway.authorizer import JwtAuthorizer
    from mcp_functions.local.lambdas import Lambdas
    from mcp_functions.local.loopback import HttpRequest, HttpResponse

MAX_BODY = 10 * 1024 * 1024  # bytes of a request's body; "Payload size: 10 MB"
ENDPOINT = re.compile(r"/mcp(?:/([^/]+))?")
METADATA = re.compile(r"/\.well-known/oauth-protected-resource(?:/mcp)?")


class Route(NamedTuple):
    """What a request is matched with."""

    method: str
    path: str
    folder: str
    guarded: bool  # by the authorizer


class Api:
    """Answers HTTP requests with the functions of one stack."""

    def __init__(
        self,
        lambdas: Lambdas,
        folders: Collection[str],
        *,
        authorizer: JwtAuthorizer | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Route to the functions in `folders`, past the authorizer of AuthMode jwt if there is one."""
        self._lambdas, self._folders, self._authorizer, self._now = lambdas, folders, authorizer, now

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer one request as API Gateway does."""
        route = self._route(request.method, unquote(request.target.partition("?")[0]))
        if route is None or route.folder not in self._folders:
            return json_response(404, {"message": "Not Found"})
        try:
            caller = self._authorizer.authorize(request) if self._authorizer and route.guarded else None
        except Denied as denied:
            return denied.response
        moment = Moment.at(self._now())
        payload = json.dumps(
            event(request, route.path, moment, caller, method=route.method), ensure_ascii=False
        ).encode()
        if len(payload) > MAX_PAYLOAD:
            return json_response(413, {"message": "Request Entity Too Large"})
        try:
            outcome = self._lambdas.invoke(route.folder, payload)
        except Throttled:
            return INTERNAL_ERROR  # as reported of the real service: it says no more
        return INTERNAL_ERROR if outcome.failed else response(outcome.payload, moment)

    def _route(self, method: str, path: str) -> Route | None:
        if self._authorizer and METADATA.fullmatch(path):
            return Route("ANY", path, FRONT_DOOR, guarded=False)
        if (method, path) == ("OPTIONS", f"/{FRONT_DOOR}"):
            return Route(method, path, FRONT_DOOR, guarded=False)
        if endpoint := ENDPOINT.fullmatch(path):
            return Route("ANY", path, endpoint[1] or FRONT_DOOR, guarded=True)
        return None
