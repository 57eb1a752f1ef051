"""What `adopt` would say about a server's options: a new Python process loads the server's file, and prints it.

The file is code of others: it may print, start a server or never end. So it gets no input, and a limited time.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from mcp_functions_harness import environment
from mcp_functions_harness.problems import first_line

SECONDS = 60  # until a file that does not finish loading is given up
MARK = "mcp-functions adopt: "  # begins the line of the result, because the file may print other lines
NEVER_ENDS = f"it did not end within {SECONDS} s: call run() only under `if __name__ == '__main__'`"


class Said(NamedTuple):
    """What the process found out."""

    refused: tuple[str, ...] = ()  # options that `adopt` refuses
    named: tuple[str, ...] = ()  # options of which it warns
    failure: str = ""  # why the server could not be loaded; "" if it was


def read(path: Path, variable: str) -> Said:
    """Load a server in a new process, and return what `adopt` says about it."""
    command = [sys.executable, "-W", "ignore", "-m", __name__, str(path), variable]
    variables = {name: value for name, value in {**os.environ, **environment.CREDENTIALS}.items() if value is not None}
    try:
        ended = subprocess.run(  # noqa: S603 - the file that the user names
            command,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Said(failure=NEVER_ENDS)
    for line in reversed(ended.stdout.splitlines()):
        if line.startswith(MARK):
            refused, named, failure = json.loads(line.removeprefix(MARK))
            return Said(tuple(refused), tuple(named), failure)
    return Said(failure=f"its process ended with exit code {ended.returncode}")


def _examine(path: Path, variable: str) -> Said:
    """Load a server as its function does, and examine it."""
    sys.path.insert(0, str(path.resolve().parent))
    try:
        from mcp_functions.adopt import library, options  # noqa: PLC0415 - `mcp` may be missing

        server = getattr(__import__(path.stem), variable)
        notices = options.examine(library.find_outermost(server), library.find_low_level(server))
    except BaseException as error:  # noqa: BLE001 - also SystemExit: the file may raise anything
        return Said(failure=first_line(error))
    refused = tuple(notice.text for notice in notices if notice.fate == "refused")
    return Said(refused, tuple(notice.text for notice in notices if notice.fate != "refused"))


if __name__ == "__main__":
    sys.stdout.write(f"\n{MARK}{json.dumps(_examine(Path(sys.argv[1]), sys.argv[2]))}\n")
    sys.stdout.flush()
    os._exit(0)  # threads of the server's file must not keep the process alive
