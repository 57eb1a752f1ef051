"""The declarations after `*` in a signature: capabilities, questions (`Ask`) and shared values (`Shared`).

A capability is an object with which an author's function acts in one round, that is in one request of a conversation:
it asks the user, runs a step, or reports progress. The function declares it by the type of a parameter.

A round that ends before its function does leaves a sealed state for the next round. So a Lambda needs keys if one of
its handlers has a capability with `needs_state`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from mcp_functions.protocol.messages import Principal
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager, AbstractContextManager
    from typing import Self

    from mcp_functions.rounds.round import Round


class Capability:
    """The base of all capabilities. Each belongs to one round."""

    needs_state: ClassVar[bool] = False  # True if it can end a round, so that its Lambda has to seal a state
    asks: ClassVar[bool] = False  # True if it asks the user
    low_level: ClassVar[bool] = False  # True for the functions that return InputRequiredResult
    logs: ClassVar[bool] = False  # True if it sends log messages, which the server then advertises

    def __init__(self, round_: Round) -> None:
        """Keep the round in which the function runs."""
        self._round = round_

    @classmethod
    def check(cls, parameter: str, _args: tuple[Any, ...]) -> None:
        """Raise a TypeError if the types in a parameter's brackets are wrong, as in `RequestState[int]`."""

    @classmethod
    def for_round(cls, round_: Round, _args: tuple[Any, ...]) -> Self:
        """Make the capability for one round; `_args` are the types in its brackets in the signature."""
        return cls(round_)


class Ask(NamedTuple):
    """Declares a question in the signature, after `*`: `how: Annotated[Resolution, Ask("How was it resolved?")]`.

    The questions of a signature are asked together, before the function runs; the model does not see them. With
    `Annotated[Resolution | None, Ask(…)]` the value is None if the user declines. In the message, an argument replaces
    `{name}`.
    """

    message: str


class Shared(NamedTuple):
    """Declares what the calls of a container share, after `*`: `database: Annotated[Database, Shared(open_database)]`.

    The function returns a context manager, as one with `@contextmanager` or `@asynccontextmanager` does. The first call
    of a container enters it, and each call gets its value; so do other handlers that name the same function. Each round
    may run in another container, so what a conversation must remember does not belong there.
    """

    enter: Callable[[], AbstractContextManager[Any] | AbstractAsyncContextManager[Any]]


class Caller(Capability):
    """The authenticated caller, the same in every round.

    With AuthMode `iam` the issuer is `aws:iam`, and the subject holds account and user. With `none` every field is
    empty. The access token is not here: "MCP servers MUST NOT pass through the token they received"
    (basic/authorization).

    Attributes:
        known: whether the caller is authenticated.
        issuer: the issuer of the caller's identity; "" without authentication.
        subject: the caller's id, unique only together with the issuer.
        client: the id of the OAuth client; "" if the token has none.
        scopes: the scopes of this request's token. The token of another round may have others.
    """

    def __init__(self, round_: Round) -> None:
        """Read the principal of the round's request."""
        super().__init__(round_)
        self.known = round_.request.principal is not None
        principal = round_.request.principal or Principal("", "", "")
        self.issuer = principal.iss
        self.subject = principal.sub
        self.client = principal.client
        self.scopes = round_.request.scopes
