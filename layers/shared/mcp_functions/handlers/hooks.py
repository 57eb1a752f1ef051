"""The hook around calls: `serve(…, around=hook)`, in the place of other libraries' middleware.

@contextmanager
def timed(call: Call) -> Iterator[None]:
    began = time.monotonic()
    try:
        yield
    finally:
        print(call.name, time.monotonic() - began)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.json_reader import copy_json
from mcp_functions.rounds.capabilities import Caller
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.handlers.base import Handler
    from mcp_functions.rounds.round import Round


class Call(NamedTuple):
    """One round of a call, as the hook `serve(…, around=…)` sees it.

    Attributes:
        kind: "tool", "prompt", "resource" or "resource_template".
        name: of the tool, prompt or resource.
        arguments: of the function, by parameter: a copy.
        caller: the authenticated caller.
        round: counts the rounds of the conversation from 1. The hook runs in each.
    """

    kind: str
    name: str
    arguments: Mapping[str, Any]
    caller: Caller
    round: int


def check(around: object, handlers: Sequence[Handler[..., Any]]) -> None:
    """Refuse a hook that cannot be called, or that would run around an adopted server, with a TypeError."""
    if not callable(around):
        message = "around is a function that takes a Call and returns a context manager"
        raise TypeError(message)
    if any(handler.is_adopted for handler in handlers):
        message = "around is for @tool, @prompt and @resource: an adopted server has the middleware of its library"
        raise TypeError(message)


def run_inside(
    handler: Handler[..., Any], arguments: Mapping[str, Any], round_: Round, run: Callable[[], object]
) -> object:
    """Run one round inside the context manager that the handler's hook returns.

    Raises:
        DeveloperError: the hook returned something else, or its context manager swallowed an exception.
    """
    around: Any = handler.around
    manager = around(Call(handler.kind, handler.name, copy_json(arguments), Caller(round_), round_.request.number))
    if not hasattr(type(manager), "__enter__"):
        rule = "serve(around=…) returned no context manager; write the hook with contextlib.contextmanager"
        raise DeveloperError(rule)
    returned = []
    with manager:
        returned.append(run())
    if not returned:
        rule = "the hook of serve(around=…) swallowed an exception; it may raise another one in its place"
        raise DeveloperError(rule)
    return returned[0]
