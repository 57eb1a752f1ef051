"""`make profile CASE=…`: where a cold start spends its time (who imports what), and where a warm call does.

Both tools slow down what they look at, imports by a tenth, calls by half and more: read shares here, and times in
`make bench`.
"""

from __future__ import annotations

import argparse
import os
import pstats
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.benchmarks import cases, dialects, environments, lab, measuring
from tests.benchmarks.entrants import ENTRANTS, OURS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

TOP = 25
LEAST = 0.01  # of all imports, with what it imports: a module that the tree shows
CALLS = 2000
MARK = "import time:"


class Module(NamedTuple):
    """One import: itself and with what it imported, microseconds; who imported it, the nearest first."""

    name: str
    own: int
    all: int
    importers: tuple[str, ...]


def main(words: Sequence[str]) -> int:
    """Profile one case of one contender."""
    every = {case.name: case for case in cases.CASES}
    parser = argparse.ArgumentParser(prog="make profile", description=__doc__)
    parser.add_argument("case", choices=sorted(every), metavar="CASE", help=", ".join(sorted(every)))
    parser.add_argument("--who", choices=list(ENTRANTS), default=OURS, help="a contender")
    asked = parser.parse_args(words)
    item = lab.Item(every[asked.case], ENTRANTS[asked.who])
    try:
        with lab.lab(environments.Trees(environments.interpreter())) as made:
            text = cold(made, item) if item.case.start == "cold" else warm(made, item)
    except (environments.Missing, dialects.WrongAnswer) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(text)
    return 0


def cold(made: lab.Lab, item: lab.Item) -> str:
    """Tell of the imports of a new process, or of both where the path is through `/mcp`."""
    said: list[tuple[str, str]] = []
    plain = measuring.sample_cold(made, item)
    measuring.sample_cold(made, item, lambda function, text: said.append((function, text)))
    lines = [f"{item.case.name}, {item.entrant.title}: {plain.cpu / 1e6:.1f} ms of processor time, without a profiler"]
    for function, text in reversed(said):
        modules = read_imports(text)
        total = sum(module.own for module in modules)
        lines += ["", f"{function}: {len(modules)} modules imported, {total / 1000:.1f} ms", "", *_top(modules), ""]
        lines += ["with all that they import, from a hundredth on (ms):", *_tree(modules, total * LEAST)]
    return "\n".join(lines) + "\n"


def read_imports(text: str) -> list[Module]:
    """Read what `-X importtime` wrote: a module stands after those it imported, two blanks further out."""
    found: list[Module] = []
    around: list[tuple[int, str]] = []  # depth and name of those who import what comes next, read from the end
    for line in reversed(text.splitlines()):
        if not line.startswith(MARK) or "cumulative" in line:
            continue
        own, all_, name = line.removeprefix(MARK).split("|", 2)
        depth = len(name) - len(name.lstrip())
        while around and around[-1][0] >= depth:
            around.pop()
        found.append(Module(name.strip(), int(own), int(all_), tuple(who for _, who in reversed(around))))
        around.append((depth, name.strip()))
    return found[::-1]


def _top(modules: Iterable[Module]) -> list[str]:
    ordered = sorted(modules, key=lambda module: -module.own)[:TOP]
    rows = [f"{module.own / 1000:8.2f}  {module.all / 1000:8.2f}  {_chain(module)}" for module in ordered]
    return ["    self       all  module < who imported it (ms)", *rows]


def _chain(module: Module) -> str:
    shown = " < ".join([module.name, *module.importers[:4]])
    return f"{shown} < …" if len(module.importers) > 4 else shown


def _tree(modules: Sequence[Module], least: float) -> Iterator[str]:
    """Write modules under their importers, the dearest first."""

    def under(path: tuple[str, ...]) -> Iterator[str]:
        children = [module for module in modules if module.importers == path and module.all >= least]
        for module in sorted(children, key=lambda module: -module.all):
            yield f"{module.all / 1000:8.1f}  {'  ' * len(path)}{module.name}"
            yield from under((module.name, *path))

    return under(())


def warm(made: lab.Lab, item: lab.Item) -> str:
    """Tell which functions a warm call spends its time in, and who calls them."""
    file = made.folder / "profile"
    with ExitStack() as stack:
        started = measuring.ready(made, item, stack)
        taken = measuring.sample_warm(started, CALLS).cpu / 1000
        started.front.profiled(started.event, CALLS, str(file))
    stats: dict[tuple[str, int, str], tuple[int, int, float, float, dict[tuple[str, int, str], object]]]
    stats = pstats.Stats(str(file)).stats  # type: ignore[attr-defined]
    ordered = sorted(stats.items(), key=lambda entry: -entry[1][2])[:TOP]
    lines = [f"{item.case.name}, {item.entrant.title}: {taken:.1f} µs of processor time, without a profiler", ""]
    lines.append("    self       all    calls  function < who calls it (µs of one call, profiled)")
    for where, (_primitive, calls, own, all_, callers) in ordered:
        chain = " < ".join([_place(where), *map(_place, list(callers)[:2])])
        lines.append(f"{own / CALLS * 1e6:8.2f}  {all_ / CALLS * 1e6:8.2f}  {calls / CALLS:7.1f}  {chain}")
    return "\n".join(lines) + "\n"


def _place(where: tuple[str, int, str]) -> str:
    file, line, name = where
    return name if file == "~" else f"{Path(*Path(file).parts[-2:])}:{line} {name}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or os.environ.get("CASE", "").split()))
