"""API Gateway: three routes in front of Lambda. ANY /mcp, ANY /mcp/<name>, and 404 for everything else."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING
from urllib.parse import unquote

from mcp_functions.local.events import INTERNAL_ERROR, Moment, event, response
from mcp_functions.local.exchange import json_response
from mcp_functions.local.functions import FRONT_DOOR
from mcp_functions.local.lambdas import MAX_PAYLOAD

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from mcp_functions.local.exchange import HttpRequest, HttpResponse
    from mcp_functions.local.lambdas import Lambdas

MAX_BODY = 10 * 1024 * 1024  # bytes of a request's body; "Payload size: 10 MB"
ROUTE = re.compile(r"/mcp(?:/([^/]+))?")


class Api:
    """Answers HTTP requests with the functions of one stack."""

    def __init__(self, lambdas: Lambdas, folders: Collection[str], *, now: Callable[[], float] = time.time) -> None:
        """Route to the functions in `folders`."""
        self._lambdas, self._folders, self._now = lambdas, folders, now

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer one request as API Gateway does."""
        route = ROUTE.fullmatch(unquote(request.target.partition("?")[0]))
        folder = (route[1] or FRONT_DOOR) if route else ""
        if route is None or folder not in self._folders:
            return json_response(404, {"message": "Not Found"})
        moment = Moment.at(self._now())
        payload = json.dumps(event(request, route[0], moment), ensure_ascii=False).encode()
        if len(payload) > MAX_PAYLOAD:
            return json_response(413, {"message": "Request Entity Too Large"})
        outcome = self._lambdas.invoke(folder, payload)
        return INTERNAL_ERROR if outcome.failed else response(outcome.payload, moment)
