"""The hook around calls: `serve(…, around=hook)`, in the place of other libraries' middleware.

    @contextmanager
    def timed(call: Call) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            print(call.name, time.monotonic() - began)

The function of the handler runs at the `yield`. A call that asks its user takes several rounds, each in another
request. The hook runs in each round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.json_reader import copy_json
from mcp_functions.rounds.capabilities import Caller
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_functions.handlers.base import FunctionHandler, Handler
    from mcp_functions.rounds.round import Round


class Call(NamedTuple):
    """One round of a call, as the hook `serve(…, around=…)` sees it.

    Attributes:
        kind: "tool", "prompt", "resource" or "resource_template".
        name: the name of the tool, prompt or resource.
        arguments: a copy of the function's arguments, by parameter.
        caller: the authenticated caller.
        round: the number of the round; a call begins with 1.
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


def run_inside(handler: FunctionHandler[..., Any], arguments: Mapping[str, Any], round_: Round) -> object:
    """Run the function of a handler inside the context manager that the handler's hook returns.

    Args:
        handler: the handler, with its hook.
        arguments: the arguments of the function.
        round_: the round that runs.

    Raises:
        DeveloperError: the hook returned something else, or its context manager swallowed an exception.
    """
    around: Any = handler.around
    call = Call(
        kind=handler.kind,
        name=handler.name,
        arguments=copy_json(arguments),
        caller=Caller(round_),
        round=round_.request.number,
    )
    manager = around(call)
    if not hasattr(type(manager), "__enter__"):
        rule = "serve(around=…) returned no context manager; write the hook with contextlib.contextmanager"
        raise DeveloperError(rule)
    with manager:
        return handler.run(arguments, round_)
    # The program comes here only if the function raised, and the context manager swallowed the exception.
    rule = "the hook of serve(around=…) swallowed an exception; it may raise another one in its place"
    raise DeveloperError(rule)
