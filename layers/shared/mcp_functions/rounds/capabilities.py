"""What an author's function declares after the `*` of its signature: what it may do, and what it gets from the server.

    @tool
    def close_ticket(
        number: int,                                                        # from the model
        *,
        elicit: Elicit,                                                     # a capability: asks the user
        caller: Caller,                                                     # a capability: who calls
        how: Annotated[Resolution, Ask("How was {number} resolved?")],      # a question, asked before the function runs
        database: Annotated[Database, Shared(open_database)],               # opened once, for many calls
    ) -> str: ...

A call that asks takes several requests, and a round is one of them. The function gets new capabilities in each round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from mcp_functions.rounds.round import Round


class Capability:
    """The base class of capabilities. A parameter declares one by its type, as in `elicit: Elicit`."""

    needs_state: ClassVar[bool] = False  # True if it can end a round, so that a state is sealed
    asks: ClassVar[bool] = False  # True if it asks the user
    low_level: ClassVar[bool] = False  # True for the functions that return InputRequiredResult
    logs: ClassVar[bool] = False  # True if it sends log messages, which the server then advertises
    __after_star__ = "a capability"  # its name in the error for a parameter before `*`

    def __init__(self, round_: Round) -> None:
        """Keep the round in which the function runs. A subclass with types in brackets gets these as well."""
        self._round = round_

    @classmethod
    def check(cls, parameter: str, type_args: tuple[Any, ...]) -> None:
        """Check a declaration before any call, or raise a TypeError.

        A capability that takes types, as `RequestState[Draft]`, overrides this, and gets `(Draft,)`.
        """


class Ask(NamedTuple):
    """Declares a question: `how: Annotated[Resolution, Ask("How was {number} resolved?")]`.

    All questions of a signature are asked together, before the function runs. The arguments of the call replace the
    names in braces. The model does not see the questions. If the type is `Resolution | None`, the function gets None
    from a user who declines.
    """

    message: str

    @property
    def __after_star__(self) -> str:
        """Name what it declares, as `Capability` does."""
        return "a question to the user"


class Shared(NamedTuple):
    """Declares a value that many calls share: `database: Annotated[Database, Shared(open_database)]`.

    `open_database` returns a context manager, as a function with `@contextmanager` or `@asynccontextmanager` does. The
    first call in a process enters it, and later calls of all handlers get the same value. The rounds of a conversation
    may run in different processes, so the value must not hold what a conversation has to remember.
    """

    enter: Callable[[], AbstractContextManager[Any] | AbstractAsyncContextManager[Any]]

    @property
    def __after_star__(self) -> str:
        """Name what it declares, as `Capability` does."""
        return "a shared value"


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
        principal = round_.request.principal
        self.known = principal is not None
        self.issuer = principal.iss if principal else ""
        self.subject = principal.sub if principal else ""
        self.client = principal.client if principal else ""
        self.scopes = round_.request.scopes
