"""How long a check waits for what takes its time: a task, a line in a log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Patience(NamedTuple):
    """A limit, and the clock that it is measured with.

    Attributes:
        seconds: to wait at most.
        now: returns unix seconds.
        sleep: waits for a number of seconds.

    """

    seconds: float = 60
    now: Callable[[], float] = time.time
    sleep: Callable[[float], object] = time.sleep
