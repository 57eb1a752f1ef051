"""The Lambda function of the authorization server: `handler = serve_oauth()`.

event -> HttpRequest -> routes.answer -> response
└ exception -> error response (`responses`), and its reason in the log line
"""

from __future__ import annotations

import os
import time
from threading import Lock
from typing import TYPE_CHECKING

from mcp_functions import aws
from mcp_functions.http.request_log import RequestLog, note_response
from mcp_functions.oauth import responses, routes
from mcp_functions.oauth.errors import OAuthError
from mcp_functions.oauth.services import Services
from mcp_functions.protocol.errors import is_ctrl_c, to_mcp_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_functions.oauth.documents import Network
    from mcp_functions.observability.lines import Logger
    from mcp_functions.protocol.event_types import Event, LambdaContext, Response
    from mcp_functions.seal.kms import Wrapping


def serve_oauth(
    *,
    wrapping: Sequence[Wrapping] | None = None,
    network: Network | None = None,
    logger: Logger | None = None,
    now: Callable[[], float] = time.time,
) -> OAuthFunction:
    """Make the Lambda entry point of the authorization server.

    Args:
        wrapping: what encrypts data keys in place of the keys of MCP_KMS_KEYS, as in `serve`.
        network: the network for fetches of clients' metadata documents, which tests replace.
        logger: the author's logger, as in `serve`.
        now: the clock, unix seconds, which tests replace.
    """
    aws.prepare("kms")

    def make_services(function_name: str) -> Services:
        return Services(os.environ, function_name, now, wrapping=wrapping, network=network)

    return OAuthFunction(make_services, RequestLog(logger), now)


class OAuthFunction:
    """A Lambda entry point: `handler(event, context)`."""

    handlers = ()  # there are no MCP handlers, so the catalog does not list this function

    def __init__(self, make_services: Callable[[str], Services], log: RequestLog, now: Callable[[], float]) -> None:
        """Keep what the first event needs. `make_services` gets the physical name of the function."""
        self.__name__ = "handler"  # Powertools' Tracer reads the name of a Lambda entry point
        self._make_services = make_services
        self._log = log
        self._now = now
        self._services: Services | None = None
        self._lock = Lock()

    def __call__(self, event: Event, context: LambdaContext) -> Response:
        """Respond to one event; ValueError if it is not an HTTP request in payload format 2.0."""
        http = self._log.read(event, context, self._now())
        with self._log.taking_notes(http) as notes:
            try:
                response = routes.answer(http, self._get_services(context.function_name))
            except OAuthError as error:
                error.note()
                response = responses.make_oauth_error(error, http)
            except BaseException as error:  # also SystemExit, which would end the environment
                if is_ctrl_c(error):
                    raise
                notes.add_error(error)
                response = responses.make_server_error(to_mcp_error(error), http)
            note_response(notes, response)
        return response

    def _get_services(self, function_name: str) -> Services:
        """Make the services once. Lambda runs one request at a time, but the local harness runs several."""
        with self._lock:
            if self._services is None:
                self._services = self._make_services(function_name)
            return self._services
