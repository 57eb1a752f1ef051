"""The environment of the corpus's handlers: a log of their effects, pages that people open, and a clock."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class Effect(NamedTuple):
    """Something that a function does outside of itself, perhaps under an idempotency key."""

    name: str
    arguments: tuple[object, ...]
    key: str | None = None

    @property
    def text(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"


@dataclass
class World:
    """Everything outside the functions.

    Attributes:
        now: unix seconds.
        effects: of this round.
        entered: how often a handler was called in this round.
        left: how often its `finally` ran.
        opened: how often a user opened each page.

    """

    now: float = 1_785_000_000.0
    effects: list[Effect] = field(default_factory=list)
    entered: int = 0
    left: int = 0
    opened: Counter[str] = field(default_factory=Counter)

    def begin_round(self) -> None:
        self.effects, self.entered, self.left = [], 0, 0

    def do(self, name: str, *arguments: object, key: str | None = None, seconds: float = 0) -> str:
        """Record an effect, and return a text of it: the same for the same arguments."""
        effect = Effect(name, arguments, key)
        self.effects.append(effect)
        self.now += seconds
        return effect.text


WORLD = World()


@contextmanager
def open_resource() -> Iterator[None]:
    """Open and close a resource around the work, as an author would."""
    WORLD.entered += 1
    try:
        yield
    finally:
        WORLD.left += 1
