"""Values that are made at their first use, once for all threads."""

from __future__ import annotations

from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def lazy_value(make: Callable[[], T]) -> Callable[[], T]:
    """Return a function that makes a value at its first call, and returns the same value at every call.

    If `make` raises, the next call tries again.
    """
    made = cache(make)
    lock = Lock()

    def value() -> T:
        with lock:  # without it, two threads could call `make` at the same time
            return made()

    return value
