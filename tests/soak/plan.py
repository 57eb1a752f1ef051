"""The faults of conversations, processes and KMS calls, drawn from a seed. The same seed makes the same plan.

Two runs of a plan still differ, because the machine decides which process serves which request. The faults of a
conversation, of the n-th process and of the n-th KMS call are the same.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import NamedTuple

TOLERATED = 60.0  # seconds between two clocks, envelope.md §6.3 and §9.4
WITHIN = (-12.0, 46.0)  # seconds that a process's clock is ahead; any two are near enough
BEYOND = 150.0  # or behind, and no other is near
BEYOND_EVERY = 9  # processes of a function: one of so many is wrong beyond what is tolerated, the fourth the first
PEOPLE = ("ann", "bob")

# Where a request kills whom, from inside and to the point: before anything ran, after a step and before its record
# goes out, after the answer was made. The rest is killed from outside, at random.
KILLS = ("order begin", "order step", "order end", "note begin", "note end", "mcp begin", "mcp end")
FAULTS = {"duplicate": 7, "late": 5, "lost": 7, "rewound": 6, "stranger": 4, "": 71}  # by weight, a round
WEATHER = {"fine": 62, "throttled": 14, "failing": 9, "slow": 10, "hanging": 5}  # by weight, a KMS call
CALM = 0  # the seed of a run in which nothing befalls a process or a KMS call: what happens then, conversations bring
OUTAGE_EVERY, OUTAGE = 60, 12  # of 60 KMS calls, 12 in a row fail


class Placement(NamedTuple):
    """The n-th process of a function: its version, the seconds that its clock is ahead, and its sealing key."""

    number: int
    version: int
    skew: float
    rotated: bool


@dataclass(frozen=True)
class Planned:
    """One conversation.

    Attributes:
        number: counts from 0.
        nonce: in its arguments, its questions and its result, and in those of no other.
        person: its user.
        name: of the function, "order" or "note".
        size: the answer of its user.
        kill: the process to kill and the place in it; "" kills no process.
        fatal: the first request that may kill, counted from 0; the requests from there on try until one does.
        acts: faults of its rounds, in this order and instead of drawn ones; each is repeated until it has happened.
        broken: a defect that the functions show on purpose, to test the checker; "" for none.

    """

    number: int
    nonce: str
    person: str
    name: str
    size: int
    kill: str
    fatal: int
    acts: tuple[str, ...] = ()
    broken: str = ""


def placement(seed: int, number: int, folder: str) -> Placement:
    """Place the n-th process of a function."""
    if seed == CALM:
        return Placement(number, 0, 0.0, rotated=False)
    chance = _chance(seed, folder, number)
    within, rotated = chance.uniform(*WITHIN), chance.random() < 0.5
    if folder == "mcp":
        return Placement(number, 0, within, rotated=False)
    far = number % BEYOND_EVERY == BEYOND_EVERY // 2 - 1
    ahead = number // BEYOND_EVERY % 2 == 0
    return Placement(number, number % 2, (BEYOND if ahead else -BEYOND) if far else within, rotated)


def conversation(seed: int, number: int, conversations: int) -> Planned:
    """Plan the n-th conversation of so many."""
    chance = _chance(seed, "conversation", number)
    every = max(20, conversations // 250)
    kill = KILLS[number // every % len(KILLS)] if number % every == 0 else ""
    called = kill.partition(" ")[0]
    name = called if called in {"order", "note"} else "order" if chance.random() < 0.7 else "note"
    return Planned(
        number=number,
        nonce=f"n{number:05}-{chance.getrandbits(32):08x}",
        person=chance.choice(PEOPLE),
        name=name,
        size=chance.randrange(1000, 10_000),
        kill=kill,
        fatal=chance.randrange(3 if name == "order" else 2),
    )


def conversations(seed: int, number: int) -> list[Planned]:
    """Plan so many conversations."""
    return [conversation(seed, one, number) for one in range(number)]


def chance_of(seed: int, planned: Planned) -> random.Random:
    """Return what a conversation draws from as it goes on."""
    return _chance(seed, "acts", planned.number)


def fault(chance: random.Random) -> str:
    """Draw what befalls a round; "" for nothing."""
    return chance.choices(list(FAULTS), list(FAULTS.values()))[0]


def weather(seed: int, call: int) -> str:
    """Say what the n-th KMS call finds."""
    if seed == CALM:
        return "fine"
    if call % OUTAGE_EVERY >= OUTAGE_EVERY - OUTAGE:
        return "failing"
    return _chance(seed, "weather", call).choices(list(WEATHER), list(WEATHER.values()))[0]


def gap(chance: random.Random) -> int:
    """Draw after how many requests the next process is killed from outside."""
    return chance.randrange(100, 400)


def outside(seed: int) -> random.Random:
    """Return what decides who is killed from outside."""
    return _chance(seed, "outside", 0)


def _chance(seed: int, what: str, number: int) -> random.Random:
    return random.Random(f"{seed} {what} {number}")  # noqa: S311 - chance that repeats is the point of it
