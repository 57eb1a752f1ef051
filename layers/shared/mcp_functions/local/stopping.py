"""How `serve` and `kms` end: SIGINT and SIGTERM stop them quietly."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOOK_SECONDS = 0.2  # between two looks at the flag
STOPPING = (signal.SIGINT, signal.SIGTERM)


class _Stopped(BaseException):
    """A signal asks to stop. It is no `Exception`, so that no function catches it."""


@contextlib.contextmanager
def until_stopped() -> Iterator[Callable[[], bool]]:
    """Run the block until SIGINT or SIGTERM; a second signal does nothing.

    The signal raises an exception where the block is, and sets a flag too, because an exception in a finalizer is lost.
    There is no lock: a handler that interrupts the holder of a lock would wait for ever.
    """
    stopped = False

    def stop(_number: int, _frame: object) -> None:
        nonlocal stopped
        for number in STOPPING:
            signal.signal(number, signal.SIG_IGN)
        stopped = True
        raise _Stopped

    before = {number: signal.signal(number, stop) for number in STOPPING}
    try:
        yield lambda: stopped
    except _Stopped:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
