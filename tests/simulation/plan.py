"""Which fleets are simulated, for how long, and what came of it: numbers in, numbers out."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, NamedTuple

from tests.simulation.fleet import Counts, Load, PerContainer, PerToken, Run, Shipped, simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tests.simulation.fleet import Container, World

CEILING = 6000  # KMS calls per million rounds, at every size, in steady state
WARM_UP = 2  # epochs that are dropped
USUAL = "as above"
NAIVE, ALONE, OURS = "call per token", "key per container", "this design"
DESIGNS: dict[str, Callable[[World, int], Container]] = {NAIVE: PerToken, ALONE: PerContainer, OURS: Shipped}


class Effort(NamedTuple):
    """The length of the runs for one fleet size: epochs to count, and seeds (the comparison has one less)."""

    epochs: int
    seeds: int


SIZES = {
    1: Effort(96, 3),
    3: Effort(96, 3),
    10: Effort(32, 3),
    30: Effort(16, 3),
    100: Effort(4, 3),
    300: Effort(2, 2),
    1000: Effort(2, 2),
}
VARIATIONS = {
    USUAL: Load(1),
    "0.1 requests a second": Load(1, rate=0.1),
    "containers live 10 minutes": Load(1, alive=600.0),
}


class Task(NamedTuple):
    """One run: under which name its numbers are kept, and what is run."""

    variation: str
    design: str
    load: Load
    epochs: int
    warm_up: int
    seed: int


class Found(NamedTuple):
    """The results of several seeds for one fleet: their sum, and the calls per million rounds of each."""

    cold: Counts
    steady: Counts
    each: tuple[float, ...]


Results = dict[tuple[str, str, int], Found]  # variation, design, containers


def tasks(sizes: Mapping[int, Effort]) -> list[Task]:
    """List what to run, the longest first."""
    listed = [
        Task(name, design, replace(load, containers=size), *_effort(name, design, effort), seed)
        for size, effort in sizes.items()
        for name, load in VARIATIONS.items()
        for design in DESIGNS
        for seed in range(1, effort.seeds + (design == OURS))
        if name == USUAL or (design == OURS and seed == 1)
    ]
    return sorted(listed, key=lambda task: task.load.containers * task.load.rate * -(task.epochs + task.warm_up))


def run(listed: Sequence[Task]) -> Results:
    """Run everything, on all processors."""
    spawn = multiprocessing.get_context("spawn")  # nothing is inherited: a run depends on its task alone
    with ProcessPoolExecutor(os.cpu_count(), mp_context=spawn) as pool:
        return gather(zip(listed, pool.map(run_one, listed), strict=True))


def gather(runs: Iterable[tuple[Task, Run]]) -> Results:
    """Put the seeds of each fleet together."""
    together: dict[tuple[str, str, int], list[Run]] = {}
    for task, ended in runs:
        together.setdefault((task.variation, task.design, task.load.containers), []).append(ended)
    return {
        name: Found(
            reduce(add, (one.cold for one in many)),
            reduce(add, (one.steady for one in many)),
            tuple(one.steady.calls_per_million for one in many),
        )
        for name, many in together.items()
    }


def over(results: Results) -> list[str]:
    """Say which fleets of the design call KMS more often than they may."""
    return [
        f"{size} containers: {max(found.each):.0f} calls per million rounds, at most {CEILING} are allowed"
        for (variation, design, size), found in results.items()
        if (variation, design) == (USUAL, OURS) and max(found.each) > CEILING
    ]


def run_one(task: Task) -> Run:
    """Run one fleet once."""
    return simulate(task.load, DESIGNS[task.design], epochs=task.epochs, warm_up=task.warm_up, seed=task.seed)


def _effort(variation: str, design: str, effort: Effort) -> tuple[int, int]:
    """Return the epochs to count and those to skip before. The main result gets most, a comparison fewer."""
    if (variation, design) == (USUAL, OURS):
        return effort.epochs, WARM_UP
    if design == NAIVE:
        return 1, 1  # it remembers nothing, so nothing of it varies
    return max(1, effort.epochs // 2), 1
