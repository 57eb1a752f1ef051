"""`make soak TASKS=300`: kill the workers of tasks and check how the tasks end; on loopback only."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.soak.tasks import checker, run

SHOWN = 30  # breaches


def main(arguments: list[str] | None = None) -> int:
    """Run, check, print; return 1 after a breach, and then keep the run's directory."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.tasks", description=__doc__)
    parser.add_argument("--tasks", type=int, default=300)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--clients", type=int, default=12, help="tasks at once")
    chosen = parser.parse_args(arguments)
    directory = Path(tempfile.mkdtemp(prefix="soak-tasks-"))
    seen = run.run(chosen.tasks, seed=chosen.seed, directory=directory, clients=chosen.clients)
    rows = "\n".join(f"| {what} | {figure} |" for what, figure in checker.figures(seen))
    sys.stdout.write(f"| result | |\n| :-- | --: |\n{rows}\n")
    breaches = checker.check(seen)
    for breach in breaches[:SHOWN]:
        sys.stderr.write(f"{breach}\n")
    if breaches:
        sys.stderr.write(f"{len(breaches)} breaches; what the function and the harness wrote is in {directory}\n")
        return 1
    shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
