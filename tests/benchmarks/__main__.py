"""`make bench`: ours, peers and floors in one run, as tables, in docs/performance.md and as a picture."""

from __future__ import annotations

import argparse
import os
import platform
import random
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_functions_harness.problems import Problem
from tests.benchmarks import cases, cost, crowd, dialects, environments, lab, measuring, plot, report, targets
from tests.benchmarks.entrants import ENTRANTS
from tests.benchmarks.figures import Results, read
from tests.support.pictures import NoMatplotlib

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.benchmarks.cases import Case

ROUNDS, QUICK = 15, 5


def main(words: Sequence[str]) -> int:
    """Measure, print, write; with --strict, 1 if a target is missed."""
    asked = _asked(words)
    if asked.again:
        _write(read(report.DATA))
        return 0
    whole = not (asked.quick or asked.case or asked.only)
    try:
        trees = environments.Trees(environments.interpreter())
        results = Results(_about(trees, asked))
        with lab.lab(trees) as made:
            _measure(made, results, asked, grown=not asked.quick)
        if whole:
            _crowds(results)
    except environments.Missing as missing:
        sys.stderr.write(f"nothing can be measured here: {missing}\n")
        return 2
    sys.stdout.write(f"{report.markdown(results)}\n")
    if whole:
        _write(results)
    missed = [one for one in targets.verdicts(results) if one.found is not None and not one.met]
    return 1 if missed and asked.strict else 0


def _write(results: Results) -> None:
    """Write samples, pages and picture."""
    results.write(report.DATA)
    report.PAGE.write_text(
        report.written(report.PAGE.read_text(encoding="utf-8"), report.summary(results)), encoding="utf-8"
    )
    costs = cost.PAGE.read_text(encoding="utf-8")
    cost.PAGE.write_text(cost.written(costs, results), encoding="utf-8")
    try:
        plot.draw(results, report.PICTURE)
    except NoMatplotlib as missing:
        sys.stderr.write(f"{missing}\n")


def _crowds(results: Results) -> None:
    for people in crowd.PEOPLE:
        _say(f"{people} conversations at once\n")
        try:
            results.crowds.append(crowd.measure(people))
        except (Problem, dialects.WrongAnswer, OSError) as error:
            results.absent[f"{people} conversations at once"] = str(error)


def _asked(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} rounds, nothing that grows, nothing written")
    parser.add_argument("--case", default="", help="only the cases whose names begin so; several with commas")
    parser.add_argument("--only", default="", help="only the contenders whose titles hold this; several with commas")
    parser.add_argument("--again", action="store_true", help="measure nothing: write the pages from the last samples")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a target is missed")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the order of each round")
    parser.add_argument("--rounds", type=int, default=0, help="samples of each")
    return parser.parse_args(words)


def _measure(made: lab.Lab, results: Results, asked: argparse.Namespace, *, grown: bool) -> None:
    chance, rounds = random.Random(asked.seed), results.about["rounds"]  # noqa: S311 - chance that repeats
    every = (*cases.CASES, *(cases.growing() if grown else ()))
    chosen = [case for case in every if case.name.startswith(tuple(asked.case.split(",")))]
    cold = [case for case in chosen if case.start == "cold"]
    warm = _by_table(case for case in chosen if case.start == "warm")
    for run, together in ((measuring.cold, cold), *((measuring.warm, one) for one in warm)):
        if together:
            _say(f"{' '.join(dict.fromkeys(case.name for case in together))}\n")
            grows = all(case.size for case in together)  # a curve has many points, and each of them may be rougher
            turns = (rounds + 1) // 2 if grows else rounds
            results.add(run(made, _items(made, together, results, asked.only), turns, chance))


def _by_table(chosen: Iterable[Case]) -> list[list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in chosen:
        found.setdefault(case.table, []).append(case)
    return list(found.values())


def _items(made: lab.Lab, chosen: Iterable[Case], results: Results, only: str) -> list[lab.Item]:
    """List who takes part; a peer that cannot be installed does not, and the page says so."""
    items = []
    for case in chosen:
        for title in case.entrants:
            if not any(word in title for word in only.split(",")):
                continue
            try:
                made.environ(ENTRANTS[title])
                items.append(lab.Item(case, ENTRANTS[title]))
            except environments.Missing as missing:
                results.absent[title] = str(missing)
    return items


def _about(trees: environments.Trees, asked: argparse.Namespace) -> dict[str, object]:
    """Say when and where, without a name of this machine's."""
    words = ["make", "bench", *(["QUICK=1"] if asked.quick else []), *([f"CASE={asked.case}"] if asked.case else [])]
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "python": f"CPython {trees.measured.version}",
        "command": " ".join(words),
        "load": round(os.getloadavg()[0], 1),
        "seed": asked.seed,
        "rounds": asked.rounds or (QUICK if asked.quick else ROUNDS),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = next((line for line in lines if line.startswith("model name")), "")
    return named.partition(":")[2].strip() or platform.processor() or "a processor without a name"


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
