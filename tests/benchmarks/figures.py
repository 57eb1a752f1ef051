"""Samples become figures: medians, deciles, and ratios of what was measured in the same round of the same run."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.benchmarks.entrants import ENTRANTS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.benchmarks.lab import Item
    from tests.benchmarks.measuring import Sample


class Key(NamedTuple):
    """The key of a figure: a case, its size (0 if it has none), and a contender's title."""

    case: str
    size: int
    entrant: str


class Figure(NamedTuple):
    """One row: samples of a call in microseconds, one a round; memory in MB."""

    cpu: tuple[float, ...]
    wall: tuple[float, ...]
    memory: float = 0.0
    modules: int = 0

    @property
    def median(self) -> float:
        """The processor time of the middle sample, microseconds."""
        return median(self.cpu)

    def over(self, other: Figure) -> float:
        """Return the ratio of two contenders' processor time: the median of the ratios of each round.

        A short disturbance of the machine slows both, so ratios within a round vary less than a ratio of medians.
        """
        return median(mine / theirs for mine, theirs in zip(self.cpu, other.cpu, strict=True))


@dataclass
class Results:
    """All that one run has found.

    Attributes:
        about: date, machine, command, seed, rounds.
        figures: by key.
        absent: what is not measured, and why: a contender's title, or a case's name and the title.
        crowds: conversations at once, in the local runtime (see crowd.py).

    """

    about: dict[str, Any] = field(default_factory=dict)
    figures: dict[Key, Figure] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    crowds: list[dict[str, float]] = field(default_factory=list)

    def add(self, found: dict[Item, list[Sample] | str]) -> None:
        """Keep the samples."""
        for item, samples in found.items():
            key = Key(item.case.name, item.case.size, item.entrant.title)
            if isinstance(samples, str):
                self.absent[f"{key.case} {key.entrant}"] = samples
            elif samples:
                self.figures[key] = figure(samples)

    def get(self, case: str, entrant: str, size: int = 0) -> Figure | None:
        """Find one figure."""
        return self.figures.get(Key(case, size, entrant))

    def ratio(self, case: str, entrant: str, of: str, by: str, size: int = 0) -> float | None:
        """Say how many times the figure (of, by) the figure (case, entrant) is; None if one is missing."""
        ours, theirs = self.get(case, entrant, size), self.get(of, by, size)
        return ours.over(theirs) if ours and theirs else None

    def fastest_peer(self, case: str, size: int = 0) -> str | None:
        """Name the peer that takes the least in a case."""
        peers = {
            key.entrant: found.median
            for key, found in self.figures.items()
            if (key.case, key.size) == (case, size) and ENTRANTS[key.entrant].peer
        }
        return min(peers, key=lambda title: peers[title], default=None)

    def write(self, file: Path) -> None:
        """Write everything, so that pages can be made again from it."""
        rows = [{**key._asdict(), **found._asdict()} for key, found in self.figures.items()]
        lines = ",\n  ".join(json.dumps(row) for row in rows)
        rest = json.dumps({"about": self.about, "absent": self.absent, "crowds": self.crowds}, indent=1)
        file.write_text(f'{rest[:-2]},\n "figures": [\n  {lines}\n ]\n}}\n', encoding="utf-8")


def read(file: Path) -> Results:
    """Read what `Results.write` wrote."""
    told = json.loads(file.read_text(encoding="utf-8"))
    figures = {
        Key(row["case"], row["size"], row["entrant"]): Figure(
            tuple(row["cpu"]), tuple(row["wall"]), row["memory"], row["modules"]
        )
        for row in told["figures"]
    }
    return Results(told["about"], figures, told["absent"], told["crowds"])


def figure(samples: Sequence[Sample]) -> Figure:
    """Turn nanoseconds and KB into microseconds and MB."""
    return Figure(
        tuple(round(sample.cpu / 1000, 2) for sample in samples),
        tuple(round(sample.wall / 1000, 2) for sample in samples),
        round(max(sample.memory for sample in samples) / 1024, 1),
        max(sample.modules for sample in samples),
    )


def decile(samples: Sequence[float], tenth: int) -> float:
    """Say below which sample so many tenths of them are: the nearest one, no interpolation."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, round(tenth / 10 * (len(ordered) - 1)))]
