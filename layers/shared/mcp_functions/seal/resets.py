"""Resets objects that hold keys, clients, connections or locks, because each process needs its own.

Lambda (SnapStart) may save a process as a snapshot, and start many environments from it. Without a reset, all of these
environments would share the keys and connections of the saved process, as a forked child would share its parent's.
"""

from __future__ import annotations

import functools
import os
import weakref
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Resettable(Protocol):
    """An object that holds keys, clients, connections or locks of its process."""

    def reset(self) -> None:
        """Drop these objects. No other thread runs meanwhile."""


class PerProcess(Generic[T]):
    """A client or another value that each process makes for itself, when it first needs it."""

    def __init__(self, make: Callable[[], T]) -> None:
        """Keep the function that makes the value; nothing is made."""
        self._make = make
        self._value: T | None = None
        register_for_reset(self)

    def __call__(self) -> T:
        """Return the value of this process."""
        if self._value is None:
            self._value = self._make()
        return self._value

    def reset(self) -> None:
        """Drop the value: its sockets and credentials belong to the process that made it."""
        self._value = None


_registered: weakref.WeakSet[Resettable] = weakref.WeakSet()


def register_for_reset(resettable: Resettable) -> None:
    """Reset an object before a snapshot, after a restore and in a forked child, as long as it exists."""
    _registered.add(resettable)
    _register_hooks()


@functools.cache  # the hooks are registered once
def _register_hooks() -> None:
    os.register_at_fork(after_in_child=_reset_all)
    try:
        import snapshot_restore_py  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return
    snapshot_restore_py.register_before_snapshot(_reset_all)
    snapshot_restore_py.register_after_restore(_reset_all)


def _reset_all() -> None:
    for resettable in list(_registered):
        resettable.reset()
