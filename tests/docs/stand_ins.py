"""Small forms, a clock and an external service, which the tests of the pages share."""

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
    """An external service that records every call and its key."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.keys: list[str] = []

    def look_up(self, item: str) -> str:
        self.calls.append(item)
        return f"offer for {item}"

    def charge(self, euros: int, key: str) -> str:
        self.keys.append(key)
        return f"receipt for {euros}"
