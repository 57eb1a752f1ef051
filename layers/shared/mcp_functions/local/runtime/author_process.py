"""Runs Lambda's runtime client for an author: as on Lambda, but with whole tracebacks and with the progress of calls.

The harness starts this file as a script, in the folder of the function, instead of `python -m awslambdaric`. Both go
into the log of the process, where the harness finds progress by the beginning of its lines.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_functions.observability import listener, progress_listener

if TYPE_CHECKING:
    from mcp_functions.observability import Notes

PROGRESS = "mcp-functions progress "  # the beginning of a line for the harness


def show_traceback(notes: Notes) -> None:
    """Write the traceback of what a handler raised by accident."""
    if notes.raised:
        from mcp_functions.local import failures  # noqa: PLC0415 - a process without a failure does not need it

        sys.stderr.write(failures.whole_traceback(notes.raised))
        sys.stderr.flush()


def show_progress(done: float, total: float | None) -> None:
    """Write how far a call is, for the harness."""
    sys.stdout.write(f"{PROGRESS}{json.dumps([done, total])}\n")
    sys.stdout.flush()


def main() -> None:
    """Run the client in this process; it calls the function in this context, so the two listeners hear of each call."""
    sys.path[0] = str(Path.cwd())  # `python -m` looks there first too
    listener.set(show_traceback)
    progress_listener.set(show_progress)
    runpy.run_module("awslambdaric", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
