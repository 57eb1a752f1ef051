"""A fleet of containers behind a random router, a fake clock, and a KMS that only counts.

The shipped code decides about keys: each container has one `mcp_functions.seal.keyring.Keyring`. The simulation adds
the load (conversations that begin at random, and answers after a delay), the containers (which start cold and live for
a while) and the time. Nothing waits for that time: a million rounds take a quarter of a minute.
"""

from __future__ import annotations

import heapq
import math
import random
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, Protocol
from unittest import mock

from mcp_functions.seal.key_choice import EPOCH_SECONDS, epoch_of
from mcp_functions.seal.keyring import MAX_KEYS, Keyring
from mcp_functions.seal.keys import DataKey, KeyCache, Scope, WrappedKey

if TYPE_CHECKING:
    from collections.abc import Callable

START = 1_767_225_600.0  # the start of an epoch
SCOPE = Scope("demo/update_work_item", "prod", "1")
DATA_KEY = bytes(32)


@dataclass(frozen=True)
class Load:
    """The load of a fleet (the parameters of `docs/performance.md`).

    Attributes:
        containers: at any time.
        rate: requests a second, for each container.
        questions: of a conversation, which has one request more.
        answered: share of questions that are answered at all.
        median: seconds that a person thinks, lognormal.
        sigma: of the logarithm of these seconds.
        lifetime: seconds after which an answer is too late.
        alive: mean seconds that a container lives, exponential.

    """

    containers: int
    rate: float = 1.0
    questions: int = 2
    answered: float = 0.9
    median: float = 8.0
    sigma: float = 1.0
    lifetime: int = 600
    alive: float = 7200.0

    @property
    def beginning(self) -> float:
        """Conversations that begin in a second."""
        requests = sum(self.answered**number for number in range(self.questions + 1))
        return self.containers * self.rate / requests


@dataclass
class Counts:
    """The counts of a run. A round is one question: a state sealed, and opened again if the question is answered."""

    rounds: int = 0
    requests: int = 0
    calls: int = 0  # of KMS
    waiting: int = 0  # requests that made at least one

    @property
    def calls_per_million(self) -> float:
        """KMS calls per million rounds."""
        return self.calls / self.rounds * 1e6

    @property
    def waiting_share(self) -> float:
        """The share of requests that wait for KMS."""
        return self.waiting / self.requests

    def __add__(self, other: Counts) -> Counts:
        """Add up what several runs have seen."""
        return Counts(
            self.rounds + other.rounds,
            self.requests + other.requests,
            self.calls + other.calls,
            self.waiting + other.waiting,
        )


class Run(NamedTuple):
    """One simulated fleet: its first epoch, in which every container starts cold, and its steady state."""

    cold: Counts
    steady: Counts


@dataclass
class CountingKms:
    """A wrapping key that wraps nothing: every key has a number, and every call is counted."""

    id: str = "counting"
    calls: int = 0
    numbers: count[int] = field(default_factory=count)

    def generate(self, _context: dict[str, str]) -> tuple[bytes, bytes]:
        self.calls += 1
        return DATA_KEY, next(self.numbers).to_bytes(8, "big")

    def unwrap(self, _wrapped: bytes, _context: dict[str, str]) -> bytes:
        self.calls += 1
        return DATA_KEY


@dataclass
class World:
    """The clock, the KMS and the random numbers that all containers share."""

    chance: random.Random
    kms: CountingKms = field(default_factory=CountingKms)
    now: float = START

    def clock(self) -> float:
        return self.now


class Container(Protocol):
    """One execution environment, as far as its keys go."""

    def seal(self) -> WrappedKey:
        """Seal a state, and say under which data key."""

    def open(self, wrapped_key: WrappedKey) -> None:
        """Open a state."""


class Shipped:
    """A container with the toolkit's own keys."""

    def __init__(self, world: World, lifetime: int) -> None:
        with mock.patch("os.urandom", world.chance.randbytes):  # the keyring draws its grace period
            self._keys = Keyring([world.kms], SCOPE, now=world.clock)
        self._lifetime = lifetime

    def seal(self) -> WrappedKey:
        return self._keys.key_to_seal().wrapped_key

    def open(self, wrapped_key: WrappedKey) -> None:
        # every token is authentic
        self._keys.open(wrapped_key, lambda _key: b"", caller="somebody", max_age=self._lifetime)


class PerContainer:
    """A container that generates a key in each epoch, and seals with no key of another container."""

    def __init__(self, world: World, _lifetime: int) -> None:
        self._world = world
        self._cache = KeyCache(MAX_KEYS)
        self._own = DataKey(WrappedKey(0, b"", b""), DATA_KEY)

    def seal(self) -> WrappedKey:
        if epoch_of(self._own.wrapped_key.born) != epoch_of(self._world.now):
            _plaintext, wrapped = self._world.kms.generate({})
            self._own = DataKey(WrappedKey(int(self._world.now), b"", wrapped), DATA_KEY)
            self._cache.add(self._own, caller=None)
        return self._own.wrapped_key

    def open(self, wrapped_key: WrappedKey) -> None:
        if self._cache.get(wrapped_key) is None:
            self._world.kms.unwrap(wrapped_key.encrypted, {})
            self._cache.add(DataKey(wrapped_key, DATA_KEY), caller="somebody")


class PerToken:
    """A container that keeps no keys: GenerateDataKey for every token sealed, Decrypt for every token opened."""

    def __init__(self, world: World, _lifetime: int) -> None:
        self._kms = world.kms

    def seal(self) -> WrappedKey:
        _plaintext, wrapped = self._kms.generate({})
        return WrappedKey(0, b"", wrapped)

    def open(self, wrapped_key: WrappedKey) -> None:
        self._kms.unwrap(wrapped_key.encrypted, {})


class _Fleet:
    """Containers behind a router that knows nothing of conversations."""

    def __init__(self, load: Load, design: Callable[[World, int], Container], world: World) -> None:
        self._load, self._design, self._world = load, design, world
        self._running = [self._launch() for _ in range(load.containers)]

    def route(self) -> Container:
        """Give the next request to any of them; one whose time is over has been replaced by a cold one."""
        at = int(self._world.chance.random() * len(self._running))
        container, ends = self._running[at]
        if self._world.now >= ends:
            container, _ends = self._running[at] = self._launch()
        return container

    def _launch(self) -> tuple[Container, float]:
        ends = self._world.now + self._world.chance.expovariate(1 / self._load.alive)
        return self._design(self._world, self._load.lifetime), ends


def simulate(load: Load, design: Callable[[World, int], Container], *, epochs: int, warm_up: int, seed: int) -> Run:
    """Run one fleet.

    Args:
        load: what it has to do.
        design: makes a cold container.
        epochs: how many quarters of an hour are counted.
        warm_up: how many go before them; in the first all containers start cold, and that is counted apart.
        seed: of all chance.

    """
    world = World(random.Random(seed))  # noqa: S311 - chance that repeats is the point of it
    fleet, kms = _Fleet(load, design, world), world.kms
    phases = [Counts() for _ in range(warm_up + 1)]  # the epochs of the warm-up, and what comes after them
    due: list[_Due] = [_Due(START, 0, None, load.questions)]
    serial = count(1)
    while due[0].at < START + (warm_up + epochs) * EPOCH_SECONDS:
        request = heapq.heappop(due)
        world.now = request.at
        if request.wrapped_key is None:
            begins = world.now + world.chance.expovariate(load.beginning)
            heapq.heappush(due, _Due(begins, next(serial), None, load.questions))
        counted = phases[min(warm_up, int((world.now - START) // EPOCH_SECONDS))]
        before = kms.calls
        answer = _serve(request, fleet.route(), load, world, next(serial))
        if answer:
            heapq.heappush(due, answer)
        counted.requests += 1
        counted.rounds += request.left > 0
        counted.calls += kms.calls - before
        counted.waiting += kms.calls > before
    return Run(phases[0], phases[-1])


class _Due(NamedTuple):
    """A request to come: when, with which state, and how many questions are left to ask."""

    at: float
    serial: int  # no two requests are compared further than this
    wrapped_key: WrappedKey | None
    left: int


def _serve(request: _Due, container: Container, load: Load, world: World, serial: int) -> _Due | None:
    """Open what the request brings, seal what it leaves, and say when the answer comes, if it ever does."""
    if request.wrapped_key is not None:
        container.open(request.wrapped_key)
    if not request.left:
        return None
    sealed = container.seal()
    thinks = world.chance.lognormvariate(math.log(load.median), load.sigma)
    if world.chance.random() >= load.answered or thinks >= load.lifetime:
        return None
    return _Due(world.now + thinks, serial, sealed, request.left - 1)
