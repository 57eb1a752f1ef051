"""What a function may do is handed to it after `*`: a parameter's type is the capability.

Those with `asks` can end a round, so that their Lambda must be able to seal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from typing import Self

    from mcp_functions.rounds.round import Round

NOBODY = ("", "", "")


class Capability:
    """What every capability has: it is made for one round.

    Attributes:
        asks: whether it can end a round.
        low_level: whether it belongs to the level on which a function returns InputRequiredResult.

    """

    asks: ClassVar[bool] = False
    low_level: ClassVar[bool] = False

    def __init__(self, round_: Round) -> None:
        """Act within one round."""
        self._round = round_

    @classmethod
    def of(cls, round_: Round, _args: tuple[Any, ...]) -> Self:
        """Make it for one round; `_args` are what stands in its brackets in the signature."""
        return cls(round_)


class Caller(Capability):
    """Who calls, the same in every round: what an author's own page or database needs to know.

    With AuthMode `iam` the issuer is `aws:iam`, and the subject holds account and user. With `none` a caller is nobody.
    A token is in here nowhere: "MCP servers MUST NOT pass through the token they received" (basic/authorization).
    """

    @property
    def known(self) -> bool:
        """Whether anybody vouches for the caller at all."""
        return self._round.request.principal is not None

    @property
    def issuer(self) -> str:
        """Who vouches for the caller; "" if nobody does."""
        return (self._round.request.principal or NOBODY)[0]

    @property
    def subject(self) -> str:
        """The caller's name with the issuer, and nowhere else: keep both."""
        return (self._round.request.principal or NOBODY)[1]

    @property
    def client(self) -> str:
        """The client that the caller uses, as the issuer knows it; "" if the token does not say."""
        return (self._round.request.principal or NOBODY)[2]

    @property
    def scopes(self) -> frozenset[str]:
        """What the token of this round grants, word for word; another round's may grant other things."""
        return self._round.request.scopes
