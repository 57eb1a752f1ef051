"""A Lambda function whose endpoint answers requests with a function of a test, in place of handlers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.assembly import Parts, assemble
from mcp_functions.handlers import catalog
from mcp_functions.http.gateway import LambdaFunction

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.protocol.catalog_types import Catalog
    from mcp_functions.protocol.messages import Request
    from mcp_functions.settings import Settings


class Answering(NamedTuple):
    """What stands in place of handlers: a front door that forwards nothing."""

    answer: Callable[[Request], Any]
    catalog: Catalog = catalog.build(())
    forward: Any = None
    showing: Any = None


def make_function(
    settings: Settings, answer: Callable[[Request], Any], *, now: Callable[[], float] = time.time
) -> LambdaFunction:
    """Make the function."""
    endpoint = assemble(Parts(settings, "tested", now), Answering(answer))
    return LambdaFunction(lambda _name, _now: endpoint, now=now)
