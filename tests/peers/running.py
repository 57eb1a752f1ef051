"""Start the servers of an SDK, attack each, stop them."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_functions.attack import Report, Severity, attack

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HERE = Path(__file__).parent
COMMANDS: dict[str, Sequence[str]] = {
    "python": [sys.executable, "-m", "tests.peers.python_sdk"],
    "typescript": ["node", str(HERE / "typescript_sdk.mjs")],
}


@contextmanager
def started(command: Sequence[str]) -> Iterator[dict[str, str]]:
    """Start servers; yields the URL of each by the name of its configuration."""
    with subprocess.Popen(  # noqa: S603 - one of ours
        command,
        cwd=HERE.parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout
            urls: dict[str, str] = json.loads(process.stdout.readline())
            yield urls
        finally:
            process.terminate()


def attacked(command: Sequence[str]) -> dict[str, Report]:
    """Attack every server of an SDK."""
    with started(command) as urls:
        return {name: attack(url) for name, url in urls.items()}


def row(name: str, report: Report) -> str:
    """Write what was found as docs/attack.md has it."""
    by_severity = {
        severity: sorted(finding.check.name for finding in report.findings if finding.check.severity is severity)
        for severity in Severity
    }
    return (
        f"| {name} | "
        + " | ".join(" ".join(f"`{check}`" for check in found) or "none" for found in by_severity.values())
        + " |"
    )
