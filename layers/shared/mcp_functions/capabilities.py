"""What a function may do is handed to it after `*`: a parameter's type is the capability.

Those with `asks` can end a round, so that their Lambda must be able to seal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from typing import Self

    from mcp_functions.rounds import Round


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
