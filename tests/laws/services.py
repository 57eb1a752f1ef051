"""The services outside the functions: a log of what the functions did to them, pages that a user opens, and a clock."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class Effect(NamedTuple):
    """One call of a service by a function, perhaps with an idempotency key."""

    name: str
    arguments: tuple[object, ...]
    key: str | None = None

    @property
    def text(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"


@dataclass
class Services:
    """Everything outside the functions.

    Attributes:
        now: the time, in unix seconds.
        effects: the calls of this round.
        opened_resources: how many resources handlers opened in this round.
        closed_resources: how many they closed.
        page_visits: how often a user opened each page, by URL.
    """

    now: float = 1_785_000_000.0
    effects: list[Effect] = field(default_factory=list)
    opened_resources: int = 0
    closed_resources: int = 0
    page_visits: Counter[str] = field(default_factory=Counter)

    def begin_round(self) -> None:
        self.effects = []
        self.opened_resources = 0
        self.closed_resources = 0

    def call(self, name: str, *arguments: object, key: str | None = None, seconds: float = 0) -> str:
        """Record an effect that takes some seconds, and return its text: the same for the same arguments."""
        effect = Effect(name, arguments, key)
        self.effects.append(effect)
        self.now += seconds
        return effect.text


SERVICES = Services()


@contextmanager
def open_resource() -> Iterator[None]:
    """Open and close a resource around the work, as an author would."""
    SERVICES.opened_resources += 1
    try:
        yield
    finally:
        SERVICES.closed_resources += 1
