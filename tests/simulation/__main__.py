"""`make simulate`: what KMS costs fleets of 1 to 1000 containers, as a table of docs/performance.md and a picture."""

from __future__ import annotations

import sys

from tests.simulation import plan, plot, report
from tests.support.pictures import NoMatplotlib


def main() -> int:
    """Simulate, print, write; 1 if a fleet calls KMS more often than it may."""
    results = plan.run(plan.tasks(plan.SIZES))
    tables = report.markdown(results)
    sys.stdout.write(f"{tables}\n")
    report.PAGE.write_text(report.written(report.PAGE.read_text(encoding="utf-8"), tables), encoding="utf-8")
    try:
        plot.draw(results, report.PICTURE)
    except NoMatplotlib as missing:
        sys.stderr.write(f"{missing}\n")
    for line in plan.over(results):
        sys.stderr.write(f"too many: {line}\n")
    return 1 if plan.over(results) else 0


if __name__ == "__main__":
    sys.exit(main())
