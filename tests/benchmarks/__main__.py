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

from tests.benchmarks import cases, environments, measuring, report
from tests.benchmarks.entrants import ENTRANTS
from tests.benchmarks.figures import Results

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.benchmarks.cases import Case

ROUNDS, QUICK = 15, 5


def main(words: Sequence[str]) -> int:
    """Measure, print, write."""
    asked = _asked(words)
    try:
        trees = environments.Trees(environments.interpreter())
        results = Results(_about(trees, asked))
        with measuring.lab(trees) as lab:
            _measure(lab, results, asked)
    except environments.Missing as missing:
        sys.stderr.write(f"nothing can be measured here: {missing}\n")
        return 2
    sys.stdout.write(f"{report.markdown(results)}\n")
    return 0


def _asked(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} rounds, nothing that grows, nothing written")
    parser.add_argument("--case", default="", help="only the cases whose names begin so; several with commas")
    parser.add_argument("--only", default="", help="only the contenders whose titles hold this; several with commas")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the order of each round")
    parser.add_argument("--rounds", type=int, default=0, help="samples of each")
    return parser.parse_args(words)


def _measure(lab: measuring.Lab, results: Results, asked: argparse.Namespace) -> None:
    chance, rounds = random.Random(asked.seed), results.about["rounds"]  # noqa: S311 - chance that repeats
    chosen = [case for case in cases.CASES if case.name.startswith(tuple(asked.case.split(",")))]
    for start, run in (("cold", measuring.cold), ("warm", measuring.warm)):
        of_start = [case for case in chosen if case.start == start]
        tables = [of_start] if start == "cold" else _by_table(of_start)
        for together in tables:
            _say(f"{' '.join(case.name for case in together)}\n")
            results.add(run(lab, _items(lab, together, results, asked.only), rounds, chance))


def _by_table(chosen: Iterable[Case]) -> list[list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in chosen:
        found.setdefault(case.table, []).append(case)
    return list(found.values())


def _items(lab: measuring.Lab, chosen: Iterable[Case], results: Results, only: str) -> list[measuring.Item]:
    """List who takes part; a peer that cannot be installed does not, and the page says so."""
    items = []
    for case in chosen:
        for title in case.entrants:
            if not any(word in title for word in only.split(",")):
                continue
            try:
                lab.environ(ENTRANTS[title])
                items.append(measuring.Item(case, ENTRANTS[title]))
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
