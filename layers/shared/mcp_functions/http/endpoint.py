"""What a Lambda function answers with. `assembly` makes it, at the first event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.http.events import HttpRequest, LambdaContext, Response
    from mcp_functions.protocol.messages import AnyResult, Request
    from mcp_functions.protocol.wire_types import JSONRPCRequest, JSONValue
    from mcp_functions.settings import Settings

# A request that a dialect translated, and the HTTP request with the headers for it.
Continuation: TypeAlias = "tuple[HttpRequest, JSONRPCRequest]"


class Endpoint(NamedTuple):
    """What a Lambda function answers with. A feature that the deployment does not have is None."""

    settings: Settings
    answer: Callable[[Request], AnyResult]  # calls a handler here, or forwards to the function that has it
    catalog: Mapping[str, Any] = {}  # describes the handlers (`handlers.catalog`)
    is_stopped: bool = False  # whether the operator stopped this function
    # Responds to a client of 2025; returns None for a message of this revision.
    answer_legacy: Callable[[HttpRequest], Response | None] | None = None
    # Translates a message of a dialect into a request; returns None for any other message.
    continue_dialect: Callable[[HttpRequest, JSONValue], Continuation | None] | None = None
    # Continues a task, as an order to a worker says.
    run_task: Callable[[Mapping[str, Any], LambdaContext], None] | None = None
