"""The Lambda function of the sign-in front: `handler = serve_oauth()`.

    event -> HttpRequest -> front.answer(services) -> response
                                 └ exception -> error response (`responses`), and its reason in the log line

The front is an OAuth authorization server for MCP clients, before the OpenID Connect provider of a deployment. It keeps
nothing between two requests that another container would need.
"""

from __future__ import annotations

import os
import time
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from mcp_functions import aws
from mcp_functions.http import events
from mcp_functions.http.request_log import RequestLog, note_response
from mcp_functions.oauth import front, responses, services
from mcp_functions.oauth.errors import OAuthError
from mcp_functions.protocol.errors import is_ctrl_c, to_mcp_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.http.events import LambdaContext, Response
    from mcp_functions.oauth.safe_fetch import Network
    from mcp_functions.observability.lines import Logger
    from mcp_functions.seal.kms import Wrapping


def serve_oauth(
    *,
    wrapping: Sequence[Wrapping] | None = None,
    network: Network | None = None,
    logger: Logger | None = None,
    now: Callable[[], float] = time.time,
) -> SignInFunction:
    """Make the Lambda entry point of the sign-in front.

    Args:
        wrapping: what encrypts data keys in place of the keys of MCP_KMS_KEYS, as in `serve`.
        network: the network for fetches of clients' metadata documents, which tests replace.
        logger: the author's logger, as in `serve`.
        now: the clock, unix seconds, which tests replace.
    """
    aws.prepare("kms")
    make_services = partial(services.make_services, os.environ, wrapping=wrapping, network=network)
    return SignInFunction(make_services, now=now, logger=logger)


class SignInFunction:
    """A Lambda entry point: `handler(event, context)`.

    Attributes:
        handlers: the MCP handlers; there are none, so the catalog does not list this function.
        now: the clock, unix seconds.
    """

    def __init__(
        self,
        make_services: Callable[[str, Callable[[], float]], services.Services],
        *,
        now: Callable[[], float],
        logger: Logger | None,
    ) -> None:
        """Keep what the first event needs; `make_services` gets the name of the Lambda function and the clock."""
        self.__name__ = "handler"  # Powertools' Tracer reads the name of the entry point; an object has none by itself
        self.handlers: tuple[Any, ...] = ()
        self.now = now
        self._make_services = make_services
        self._log = RequestLog(logger)
        self._services: services.Services | None = None
        self._lock = Lock()

    def __call__(self, event: Mapping[str, Any], context: LambdaContext) -> Response:
        """Respond to one event.

        Raises:
            ValueError: the event is not an HTTP request in payload format 2.0.
        """
        http = events.read(event, context, self.now())
        with self._log.taking_notes(context, http) as notes:
            try:
                response = front.answer(event, http, self._get_services(context))
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

    def fresh(self, *, now: Callable[[], float] | None = None) -> SignInFunction:
        """Make the same function as in a new container, with nothing cached. Tests pass their own clock."""
        return SignInFunction(self._make_services, now=now or self.now, logger=self._log.logger)

    def _get_services(self, context: LambdaContext) -> services.Services:
        """Make the services once. Lambda runs one request at a time, but the local harness runs several."""
        with self._lock:
            if self._services is None:
                self._services = self._make_services(context.function_name, self.now)
            return self._services
