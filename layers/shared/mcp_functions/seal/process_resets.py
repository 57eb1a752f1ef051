"""What must not outlive its process: reset before a snapshot, after a restore and in a forked child."""

from __future__ import annotations

import functools
import os
import weakref
from typing import Protocol


class Resettable(Protocol):
    """What holds keys, clients, connections or locks of the process it belongs to."""

    def reset(self) -> None:
        """Forget them. No other thread runs meanwhile."""


_alive: weakref.WeakSet[Resettable] = weakref.WeakSet()


def register_reset(what: Resettable) -> None:
    """Have `what` reset before a snapshot, after a restore and in a forked child."""
    _alive.add(what)
    _register_hooks()


@functools.cache
def _register_hooks() -> None:
    """Have the runtime say when it takes or restores a snapshot, and the interpreter when it forks. Runs once."""
    os.register_at_fork(after_in_child=_reset_all)
    try:
        import snapshot_restore_py  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: PLC0415 - Lambda has it
    except ImportError:
        return
    snapshot_restore_py.register_before_snapshot(_reset_all)
    snapshot_restore_py.register_after_restore(_reset_all)


def _reset_all() -> None:
    for what in list(_alive):
        what.reset()
