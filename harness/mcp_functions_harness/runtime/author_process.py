"""Runs Lambda's runtime client for the author of a function, with two additions to the log of the process.

    a whole traceback           for each exception that a handler did not expect
    mcp-functions progress …    a line for each progress report of a call; the harness takes it out of the log

The harness starts this file as a script, in the folder of the function, instead of `python -m awslambdaric`.
"""

import json
import runpy
import sys
from pathlib import Path

from mcp_functions.observability import Notes, listener, progress_listener

PROGRESS = "mcp-functions progress "  # the rest of the line is a JSON array: done, total


def show_traceback(notes: Notes) -> None:
    """Write the traceback of an exception that the handler did not expect, if the request had one."""
    if notes.raised:
        from mcp_functions_harness.lambdas import failures

        sys.stderr.write(failures.whole_traceback(notes.raised))
        sys.stderr.flush()


def show_progress(done: float, total: float | None) -> None:
    """Write how far a call is; without a total, the total is unknown."""
    sys.stdout.write(f"{PROGRESS}{json.dumps([done, total])}\n")
    sys.stdout.flush()


def main() -> None:
    """Run the runtime client in this process, so that the two listeners hear of each call."""
    sys.path[0] = str(Path.cwd())  # where `python -m` would look first
    listener.set(show_traceback)
    progress_listener.set(show_progress)
    runpy.run_module("awslambdaric", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
