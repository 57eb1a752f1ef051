"""How long a check waits for what takes its time: a task, a line in a log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Patience(NamedTuple):
    """A limit, and the clock that it is measured with."""

    seconds: float = 60  # to wait at most
    now: Callable[[], float] = time.time  # returns unix seconds
    sleep: Callable[[float], object] = time.sleep  # waits for a number of seconds
