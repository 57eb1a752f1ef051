"""The environment of the corpus's handlers: a log of their effects, pages that people open, and a clock."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class Did(NamedTuple):
    """One thing that was done in the world, under which idempotency key."""

    what: str
    to: tuple[object, ...]
    key: str | None = None


@dataclass
class World:
    """Everything outside the functions.

    Attributes:
        now: unix seconds.
        done: in this round.
        entered: how often a handler was called in this round.
        left: how often its `finally` ran.
        opened: how often a user opened the page.

    """

    now: float = 1_785_000_000.0
    done: list[Did] = field(default_factory=list)
    entered: int = 0
    left: int = 0
    opened: Counter[str] = field(default_factory=Counter)

    def begin_round(self) -> None:
        self.done, self.entered, self.left = [], 0, 0

    def do(self, what: str, *to: object, key: str | None = None, seconds: float = 0) -> str:
        """Do something that counts, and say what it came to: the same for the same words."""
        self.done.append(Did(what, to, key))
        self.now += seconds
        return f"{what}({', '.join(map(str, to))})"


WORLD = World()


@contextmanager
def visit() -> Iterator[None]:
    """Open and close a resource around the work, as an author would."""
    WORLD.entered += 1
    try:
        yield
    finally:
        WORLD.left += 1
