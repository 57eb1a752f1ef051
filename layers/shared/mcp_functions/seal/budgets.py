"""What bounds the cost of KMS: opened keys are kept, and every caller has a budget (envelope.md §6.3, §6.5)."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.seal.key_choice import DataKey, Header

T = TypeVar("T")


class Limits(NamedTuple):
    """What one container remembers, and how often one caller may make it ask KMS.

    Attributes:
        opened: data keys that are kept.
        callers: budgets that are kept.
        burst: unwraps in vain that a caller may cause at once.
        refill_seconds: after which it may cause one more.
        ratio: unwraps that succeed, and cost as much as one in vain.

    """

    opened: int = 256
    callers: int = 4096
    burst: int = 3
    refill_seconds: int = 30
    ratio: int = 20


class SingleFlight:
    """The same question, asked by several threads at once, is asked of KMS once."""

    def __init__(self) -> None:
        """Begin with nothing under way."""
        self._lock = threading.Lock()
        self._under_way: dict[object, Future[Any]] = {}

    def run(self, name: object, call: Callable[[], T], admit: Callable[[], None] = lambda: None) -> T:
        """Return what `call` returns, or raise what it raises; who comes while it runs gets the same.

        Args:
            name: of the question.
            call: asks it.
            admit: raises if this thread may not ask; not called for one that finds the question asked.

        """
        with self._lock:
            flight = self._under_way.get(name)
            follows = flight is not None
            if flight is None:
                admit()
                flight = self._under_way[name] = Future()
        if follows:
            result: T = flight.result()
            return result
        try:
            result = call()
        except BaseException as error:
            flight.set_exception(error)
            raise
        else:
            flight.set_result(result)
            return result
        finally:
            with self._lock:
                del self._under_way[name]


class KeyCache:
    """The data keys that a container has opened, at most `most` of them. Not safe to share between threads.

    A full list first drops keys of the caller who has the most in it, and of these the least recently used. So one
    caller with a thousand keys drops its own, and the keys of others stay.
    """

    def __init__(self, most: int) -> None:
        """Take how many keys are kept."""
        self._most = most
        self._keys: OrderedDict[Header, tuple[DataKey, str]] = OrderedDict()  # with the caller that KMS was asked for

    def __len__(self) -> int:
        """Count the keys."""
        return len(self._keys)

    def __contains__(self, header: Header) -> bool:
        """Tell whether a key is kept."""
        return header in self._keys

    def get(self, header: Header) -> DataKey | None:
        """Return a key, which counts as a use of it."""
        if header not in self._keys:
            return None
        self._keys.move_to_end(header)
        return self._keys[header][0]

    def add(self, header: Header, key: DataKey, caller: str = "") -> None:
        """Keep a key.

        Args:
            header: that names it in tokens.
            key: that was opened, or generated here.
            caller: that KMS was asked for; "" for a key that was generated here.

        """
        self._keys[header] = key, caller
        while len(self._keys) > self._most:
            del self._keys[self._next_to_drop()]

    def _next_to_drop(self) -> Header:
        kept = Counter(caller for _key, caller in self._keys.values())
        most = max(kept.values())
        return next(header for header, (_key, caller) in self._keys.items() if kept[caller] == most)


class UnwrapBudgets:
    """How often each caller may still make a container ask KMS. One bucket per caller, none in common.

    A bucket counts in prices of an unwrap that succeeds; one in vain costs `Limits.ratio` of them. The price of an
    unwrap in vain is taken before KMS is asked, because nobody knows yet how it ends. The memory is bounded.
    """

    def __init__(self, limits: Limits) -> None:
        """Begin with every bucket full."""
        self._limits, self._full = limits, float(limits.burst * limits.ratio)
        self._lock = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # caller -> what is left, at unix seconds

    def take(self, caller: str, now: float) -> bool:
        """Take the price of an unwrap in vain; False if `caller` has less than that left."""
        return self._change(caller, now, -float(self._limits.ratio))

    def give_back(self, caller: str, now: float) -> None:
        """Give all of it back: KMS did not answer, which is not the caller's fault."""
        self._change(caller, now, float(self._limits.ratio))

    def settle(self, caller: str, now: float) -> None:
        """Give back what an unwrap that succeeded does not cost."""
        self._change(caller, now, self._limits.ratio - 1.0)

    def take_rest(self, caller: str, now: float) -> None:
        """Take what `settle` gave back: KMS opened the key, and the token under it was forged."""
        self._change(caller, now, 1.0 - self._limits.ratio)

    def _change(self, caller: str, now: float, by: float) -> bool:
        with self._lock:
            left, since = self._left.pop(caller, (self._full, now))
            left = min(self._full, left + max(0.0, now - since) * self._limits.ratio / self._limits.refill_seconds)
            allowed = left + by >= 0
            left = min(self._full, left + by) if allowed else left
            if left < self._full:  # who has a full bucket need not be remembered
                self._left[caller] = (left, now)
            while len(self._left) > self._limits.callers:
                self._left.popitem(last=False)
            return allowed
