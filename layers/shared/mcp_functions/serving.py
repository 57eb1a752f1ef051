"""Handlers become a Lambda function: `handler = serve(my_tool)`.

Loading reads signatures only. The first event reads the environment and wires what this function needs; KMS is called
when a state is first sealed or opened. What signatures prove will be needed, an asking function's cryptography, is
imported at init, where Lambda gives a full CPU.
"""

from __future__ import annotations

import os
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mcp_functions import catalog, settings
from mcp_functions.gateway import Endpoint, LambdaFunction
from mcp_functions.server import Server

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.handlers import Handler
    from mcp_functions.request_state import RequestStates
    from mcp_functions.settings import Settings


def serve(*handlers: Handler[..., Any], now: Callable[[], float] = time.time) -> LambdaFunction:
    """Make the Lambda entry point of one or more handlers.

    Args:
        handlers: tools, prompts and resources; each with its own name.
        now: the clock, unix seconds; tests bring their own.

    Returns:
        What the template's `Handler: app.handler` names. It is an MCP endpoint of its own for these handlers.

    """
    catalog.of(handlers)  # two of one name: say so now, not at the first event
    if any(handler.asks for handler in handlers):
        import mcp_functions.envelope  # noqa: F401, PLC0415 - cryptography, for a function that will need it

    def wire(function_name: str) -> Endpoint:
        found = settings.read(os.environ)
        service = f"{found.stack}/{function_name.removeprefix(found.stack + '-')}"
        states = _states(found, service, now) if found.kms_keys else None
        return Endpoint(found, Server(handlers, found, f"{service}/{found.stage}", states, now=now).answer)

    return LambdaFunction(wire, handlers, now=now)


def _states(found: Settings, service: str, now: Callable[[], float]) -> Callable[[int], RequestStates]:
    from mcp_functions.envelope import Envelope  # noqa: PLC0415 - only where there are keys
    from mcp_functions.keys import Keys, KmsKey, Scope, kms_client  # noqa: PLC0415
    from mcp_functions.request_state import RequestStates  # noqa: PLC0415

    client = lru_cache(maxsize=1)(kms_client)
    scope = Scope(service, found.stage, found.generation)
    keys = Keys([KmsKey(arn, client) for arn in found.kms_keys], scope, now=now)

    @lru_cache
    def states(lifetime: int) -> RequestStates:
        envelope = Envelope(keys, max_age=lifetime)
        return RequestStates(envelope, now=now, lifetime_seconds=lifetime, anonymous=found.auth_mode == "none")

    return states
