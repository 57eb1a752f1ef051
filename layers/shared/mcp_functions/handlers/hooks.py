"""A hook that runs around the functions of handlers: `serve(…, around=hook)`. Other libraries call it middleware.

    @contextmanager
    def timed(call: Call) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            print(call.name, time.monotonic() - began)

The function of the handler runs at the `yield`. If the function asks its user, the call takes several requests, and the
function runs again in each of them. Each run is a round, and the hook runs in every round.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.protocol.json_reader import copy_json
from mcp_functions.rounds.capabilities import Caller
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from mcp_functions.rounds.round import Round

    Hook: TypeAlias = "Callable[[Call], AbstractContextManager[object]]"


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


def call_hook(
    hook: Hook, kind: str, name: str, arguments: Mapping[str, Any], round_: Round
) -> AbstractContextManager[object]:
    """Return the context manager of a hook for one round of a call; DeveloperError if it returned anything else."""
    manager: object = hook(Call(kind, name, copy_json(arguments), Caller(round_), round_.history.number))
    if not isinstance(manager, AbstractContextManager):  # it has `__enter__` and `__exit__`
        raise DeveloperError(
            "serve(around=…) returned no context manager; write the hook with contextlib.contextmanager"
        )
    return manager
