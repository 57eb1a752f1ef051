"""What the pages' tests have in common: small forms, a clock, and the rest of the world."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Callable

FROZEN = "Invalid or expired requestState"
YES = {"ok": True}


class Ok(BaseModel):
    ok: bool


class Other(BaseModel):
    said: str


class Clock:
    """A clock that only work moves."""

    def __init__(self) -> None:
        self.now = 1_785_000_000.0

    def __call__(self) -> float:
        return self.now

    def works(self, seconds: float) -> Callable[[int], int]:
        def work(number: int) -> int:
            self.now += seconds
            return number

        return work


class Ledger:
    """Stands for the rest of the world: it sees every call, and every key."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.keys: list[str] = []

    def look_up(self, item: str) -> str:
        self.calls.append(item)
        return f"offer for {item}"

    def charge(self, euros: int, key: str) -> str:
        self.keys.append(key)
        return f"receipt for {euros}"
