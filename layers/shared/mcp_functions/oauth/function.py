"""The Lambda function of the sign-in front: `handler = serve_oauth()`.

The front is an OAuth authorization server for MCP clients, before the OpenID Connect provider of a deployment. It keeps
nothing between two requests that another container would need. If a request fails, a browser shows a page without
details, a client gets an error of OAuth, and the log has the reason.
"""

from __future__ import annotations

import os
import time
from threading import Lock
from typing import TYPE_CHECKING, Any

from mcp_functions import aws
from mcp_functions.http import events
from mcp_functions.http.request_log import RequestLog, note_response
from mcp_functions.oauth import answers, front
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
        network: the network for fetches of metadata documents, which tests replace.
        logger: the logger that writes the line of each request, as in `serve`.
        now: the clock, unix seconds, which tests replace.
    """
    aws.prepare(aws.find_endpoint(os.environ, "kms"))  # now, because Lambda gives a full CPU while it initializes
    return SignInFunction(wrapping, network, logger, now)


class SignInFunction:
    """A Lambda entry point: `handler(event, context)`.

    Attributes:
        handlers: the MCP handlers; there are none, so the catalog does not list this function.
        now: the clock, unix seconds.
    """

    def __init__(
        self,
        wrapping: Sequence[Wrapping] | None,
        network: Network | None,
        logger: Logger | None,
        now: Callable[[], float],
    ) -> None:
        """Keep what the first event needs; see `serve_oauth`."""
        self.__name__ = "handler"  # Powertools' Tracer names a segment after the function that it wraps
        self.handlers: tuple[Any, ...] = ()
        self.now = now
        self._wrapping = wrapping
        self._network = network
        self._log = RequestLog(logger)
        self._services: front.Services | None = None
        self._lock = Lock()

    def __call__(self, event: Mapping[str, Any], context: LambdaContext) -> Response:
        """Respond to one event.

        Raises:
            ValueError: the event is not an HTTP request in payload format 2.0.
        """
        http = events.read(event)
        with self._log.request(context, http) as notes:
            try:
                response = front.answer(event, http, self._get_services(context))
            except OAuthError as error:
                error.note()
                response = answers.refused(error, http)
            except BaseException as error:  # also SystemExit, which must not end the environment
                if is_ctrl_c(error):
                    raise
                notes.add_error(error)
                response = answers.failed(to_mcp_error(error), http)
            note_response(notes, response)
        return response

    def fresh(self, *, now: Callable[[], float] | None = None) -> SignInFunction:
        """Make the same function as in a new container, with nothing cached. Tests pass their own clock."""
        return SignInFunction(self._wrapping, self._network, self._log.logger, now or self.now)

    def _get_services(self, context: LambdaContext) -> front.Services:
        """Make the services once. Lambda runs one request at a time, but the local harness runs several."""
        with self._lock:
            if self._services is None:
                self._services = front.make_services(
                    os.environ, context.function_name, self._wrapping, self._network, self.now
                )
            return self._services
