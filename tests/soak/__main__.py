"""`make soak`: inject faults into thousands of conversations and check the results; on loopback only."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from mcp_functions_harness.problems import Problem
from tests.soak import checker, plan, plot, report, run
from tests.support.pictures import NoMatplotlib

EVERY_SECONDS = 5.0  # a line
SHOWN = 30  # breaches


class Progress:
    """Says how far it is, now and then, on stderr."""

    def __init__(self, conversations: int) -> None:
        """Count up to so many."""
        self._conversations, self._next = conversations, 0.0

    def __call__(self, ended: int, requests: int, seconds: float) -> None:
        """Report the progress, if it is time."""
        if seconds >= self._next:
            self._next = seconds + EVERY_SECONDS
            sys.stderr.write(f"{seconds:5.0f} s  {ended} of {self._conversations} conversations, {requests} requests\n")


def main(arguments: list[str] | None = None) -> int:
    """Run, check, print; return 1 after a breach, and then keep the run's directory."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--conversations", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--workers", type=int, default=6, help="requests at once")
    parser.add_argument("--page", action="store_true", help="write docs/performance.md and its picture")
    chosen = parser.parse_args(arguments)
    directory = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        seen = run.run(
            plan.conversations(chosen.seed, chosen.conversations),
            seed=chosen.seed,
            directory=directory,
            workers=chosen.workers,
            progress=Progress(chosen.conversations),
        )
    except Problem as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    breaches = checker.check(seen)
    figures = report.markdown(seen, len(breaches), seed=chosen.seed)
    sys.stdout.write(f"{figures}\n")
    for breach in breaches[:SHOWN]:
        sys.stderr.write(f"{breach}\n")
    if breaches:
        sys.stderr.write(f"{len(breaches)} breaches; what functions and harness wrote is in {directory}\n")
        return 1
    shutil.rmtree(directory)
    if chosen.page:
        report.PAGE.write_text(report.written(report.PAGE.read_text(encoding="utf-8"), figures), encoding="utf-8")
        try:
            plot.draw(seen, report.PICTURE)
        except NoMatplotlib as missing:
            sys.stderr.write(f"{missing}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
