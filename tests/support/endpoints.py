"""A Lambda function whose endpoint answers requests with a function of a test."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mcp_functions.http.exchange import Endpoint
from mcp_functions.http.gateway import LambdaFunction

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.protocol.messages import Request
    from mcp_functions.settings import Settings


def make_function(
    settings: Settings,
    answer: Callable[[Request], Any],
    *,
    now: Callable[[], float] = time.time,
    **parts: Any,  # noqa: ANN401 - as `Endpoint` takes them
) -> LambdaFunction:
    """Make the function; `parts` are more fields of its `Endpoint`."""
    endpoint = Endpoint(settings, answer, **parts)
    return LambdaFunction(lambda _name, _now: endpoint, now=now)
